// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// Results of exchanges.
const (
	resultOK          = "ok"
	resultUnreachable = "unreachable"
	resultRefused     = "refused"
	resultInvalid     = "invalid"
	resultNotTaken    = "not_taken"
)

// Metrics are the series of one sidecar.
type Metrics struct {
	registry  *prometheus.Registry
	fences    *prometheus.CounterVec
	failures  *prometheus.CounterVec
	duration  prometheus.Histogram
	openings  *prometheus.CounterVec
	exchanges *prometheus.CounterVec
	refusals  *prometheus.CounterVec
}

// newMetrics registers the series; the gauges read the state at each scrape.
func newMetrics(state func() fence.State, clock Clock, probe WriteProbe) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		fences: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sidecar_fences_total",
			Help: "Fences that were proven, by cause and by the rung of the ladder that was needed (none, ReadOnly, KillSessions, KillServer).",
		}, []string{"cause", "stage"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sidecar_fence_failures_total",
			Help: "Fencing ladders that ended without proof; each is tried again.",
		}, []string{"cause"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sidecar_fence_duration_seconds",
			Help:    "How long the fencing ladder took.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 1.5, 2, 3, 5},
		}),
		openings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sidecar_openings_total",
			Help: "Attempts to open writes, by outcome.",
		}, []string{"outcome"}),
		exchanges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sidecar_exchanges_total",
			Help: "Requests for the statement, by target (operator or a peer's address) and result.",
		}, []string{"target", "result"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sidecar_refused_requests_total",
			Help: "Requests and connections that were refused, by reason.",
		}, []string{"reason"}),
	}
	gauge := func(name, help string, value func(fence.State) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(state()) })
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.fences, m.failures, m.duration, m.openings, m.exchanges, m.refusals,
		gauge("sidecar_epoch", "Highest epoch on the data volume.",
			func(s fence.State) float64 { return float64(s.Epoch()) }),
		gauge("sidecar_lease_remaining_seconds", "How long the site may stay open without another good exchange.",
			func(s fence.State) float64 { return fence.LeaseLeft(s, clock()).Seconds() }),
		gauge("sidecar_writable", "1 if MySQL was writable at the last look, else 0.",
			func(s fence.State) float64 { return truth(s.Seen().Writable) }),
		gauge("sidecar_named", "1 if the newest statement names this site, else 0.",
			func(s fence.State) float64 { return truth(s.Names()) }),
		gauge("sidecar_mysql_up", "1 if MySQL answered the last look, else 0.",
			func(s fence.State) float64 { return truth(s.Seen().Answered) }),
	)
	if probe != nil {
		m.registry.MustRegister(writeSeries{probe})
	}
	return m
}

var writeSeconds = prometheus.NewDesc("sidecar_write_probe_failing_seconds",
	"For how long every write probe has failed, by the reason of the last one: 0 if it committed. Absent while the site is not open, or the probe itself cannot write.",
	[]string{"reason"}, nil)

// writeSeries says what the write probe found.
type writeSeries struct{ probe WriteProbe }

// Describe implements prometheus.Collector.
func (writeSeries) Describe(into chan<- *prometheus.Desc) { into <- writeSeconds }

// Collect implements prometheus.Collector.
func (w writeSeries) Collect(into chan<- prometheus.Metric) {
	switch r := w.probe.Report(); {
	case r == nil || r.Outcome == wire.WriteUnknown:
	case r.Outcome == wire.WriteFails:
		into <- prometheus.MustNewConstMetric(writeSeconds, prometheus.GaugeValue, float64(r.ForMillis)/1000, r.Reason)
	default:
		into <- prometheus.MustNewConstMetric(writeSeconds, prometheus.GaugeValue, 0, "")
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m *Metrics) fenced(last fence.LastFence, took time.Duration) {
	stage := string(last.Stage)
	if last.Stage == wire.FenceNone {
		stage = "none"
	}
	m.fences.WithLabelValues(string(last.Cause), stage).Inc()
	m.duration.Observe(took.Seconds())
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, Timeout: 5 * time.Second})
}
