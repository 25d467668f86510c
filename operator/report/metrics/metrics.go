// SPDX-License-Identifier: Apache-2.0

// Package metrics registers the metric series of the operator, and deletes those of groups and sites that are gone. Each feature declares
// its own series with the constructors here, as variables of its package. Labels come in the order mysql_namespace, failover_group, site,
// then the series' own.
package metrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Label names, the same on every series.
const (
	labelNamespace = "mysql_namespace"
	labelGroup     = "failover_group"
	labelSite      = "site"
)

// Scope says what a series is about, and with that which labels come first and when its values are deleted.
type Scope int

// The scopes.
const (
	// Operator is for series of the operator itself, which are never deleted.
	Operator Scope = iota
	// Group is for series of a group.
	Group
	// Site is for series of a site of a group.
	Site
)

func (s Scope) labels(own []string) []string {
	switch s {
	case Group:
		return append([]string{labelNamespace, labelGroup}, own...)
	case Site:
		return append([]string{labelNamespace, labelGroup, labelSite}, own...)
	case Operator:
	}
	return own
}

// deleter is what every vector of series can do.
type deleter interface {
	DeletePartialMatch(prometheus.Labels) int
}

// What was declared. Packages are initialised one after the other, so it needs no lock.
var (
	all                     []prometheus.Collector
	groupSeries, siteSeries []deleter
	forget                  []func(namespace, group string)
)

func add(s Scope, c prometheus.Collector) {
	all = append(all, c)
	series, is := c.(deleter)
	if !is || s == Operator {
		return
	}
	groupSeries = append(groupSeries, series)
	if s == Site {
		siteSeries = append(siteSeries, series)
	}
}

// Gauge declares a value that goes up and down.
func Gauge(s Scope, name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, s.labels(labels))
	add(s, v)
	return v
}

// Counter declares a count that only grows.
func Counter(s Scope, name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, s.labels(labels))
	add(s, v)
	return v
}

// Histogram declares a distribution.
func Histogram(s Scope, o prometheus.HistogramOpts, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(o, s.labels(labels))
	add(s, v)
	return v
}

// OnForgetGroup has something done when the series of a group are deleted, for who keeps what it has shown.
func OnForgetGroup(do func(namespace, group string)) { forget = append(forget, do) }

var buildInfo = Gauge(Operator, "operator_build_info", "Always 1; the labels say which build of the operator this is.",
	"version", "revision", "goversion")

// Register registers every metric that the packages of this program declare, for main with controller-runtime's metrics.Registry.
func Register(r prometheus.Registerer) error {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	v, revision, goversion := version()
	buildInfo.WithLabelValues(v, revision, goversion).Set(1)
	return nil
}

// ForgetGroup deletes every series of a group.
func ForgetGroup(namespace, group string) {
	for _, do := range forget {
		do(namespace, group)
	}
	for _, d := range groupSeries {
		d.DeletePartialMatch(prometheus.Labels{labelNamespace: namespace, labelGroup: group})
	}
}

// ForgetSite deletes every series of one site.
func ForgetSite(namespace, group, site string) {
	for _, d := range siteSeries {
		d.DeletePartialMatch(prometheus.Labels{labelNamespace: namespace, labelGroup: group, labelSite: site})
	}
}

func version() (string, string, string) {
	version, revision := "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision, runtime.Version()
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return version, revision, info.GoVersion
}
