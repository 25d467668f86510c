// SPDX-License-Identifier: Apache-2.0

package report

import (
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Label names, the same on every series.
const (
	labelNamespace = "mysql_namespace"
	labelGroup     = "failover_group"
	labelSite      = "site"
)

// Refused counts what the operator's listeners did not let in, or did not answer, by listener and reason.
var Refused = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "operator_refused_requests_total",
	Help: "Connections and requests that a listener of the operator (auxiliary, escrow, metrics, probes) refused, by reason.",
}, []string{"listener", "reason"})

// Listeners of Refused.
const (
	ListenerAuxiliary = "auxiliary"
	ListenerEscrow    = "escrow"
	ListenerMetrics   = "metrics"
	ListenerProbes    = "probes"
)

// Reasons of BadAnswers.
const (
	AnswerBadStatement = "BadStatement"
	AnswerRefused      = "Refused"
	AnswerTooLarge     = "TooLarge"
	AnswerUnreadable   = "Unreadable"
	AnswerOtherPod     = "OtherPod"
	// AnswerUnauthenticated is a report without the MAC of the site's key, or with another one.
	AnswerUnauthenticated = "Unauthenticated"
)

var (
	ofGroup = []string{labelNamespace, labelGroup}
	ofSite  = []string{labelNamespace, labelGroup, labelSite}
)

// The metrics. Labels come in the order mysql_namespace, failover_group, site, then the metric's own.
var (
	// GroupReady is 1 for a group whose condition Ready is true, else 0.
	GroupReady = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_group_ready",
		Help: "1 if the group is ready, else 0.",
	}, ofGroup)

	// ClaimedElsewhere is 1 for a group that this operator sees and another release operates.
	ClaimedElsewhere = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_group_claimed_elsewhere",
		Help: "1 for a group that this operator leaves alone because another release operates it, or is to; absent otherwise.",
	}, ofGroup)

	// ActiveSite is one-hot over the sites of a group; set it with SetActiveSite.
	ActiveSite = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_active_site",
		Help: "1 for the active site of the group, 0 for the others.",
	}, ofSite)

	// Epoch is the group's epoch.
	Epoch = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_epoch",
		Help: "Epoch of the group; it grows by one with every change of the active site.",
	}, ofGroup)

	// Failovers counts changes of the active site, by reason and outcome.
	Failovers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "operator_failovers_total",
		Help: "Changes of the active site, by reason and outcome.",
	}, append(append([]string(nil), ofGroup...), "reason", "outcome"))

	// FailoverDuration is the time from the detection of trouble to an open active site.
	FailoverDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                            "operator_failover_duration_seconds",
		Help:                            "Time from the detection of trouble, or from the request, to an open active site.",
		Buckets:                         []float64{0.5, 1, 2, 5, 10, 15, 20, 25, 30, 45, 60, 120, 300},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: 0,
	}, append(append([]string(nil), ofGroup...), "kind"))

	// ForecastTransactions is what an emergency failover would lose now; set it with SetForecast.
	ForecastTransactions = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_forecast_lost_transactions",
		Help: "Transactions that an emergency failover would lose if the active site were lost now; absent while unknown.",
	}, ofGroup)

	// ForecastSeconds is the lag of the site that would take over.
	ForecastSeconds = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_forecast_lost_seconds",
		Help: "Replication lag of the site that would take over if the active site were lost now; absent while unknown.",
	}, ofGroup)

	// ForecastBlocked is 1 with the reason that would block an emergency failover now.
	ForecastBlocked = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_forecast_blocked",
		Help: "1 with the reason for which an emergency failover would not happen by itself now; absent if it would.",
	}, append(append([]string(nil), ofGroup...), "reason"))

	// ReplicationLag is the age of the newest transaction that a replica has not applied.
	ReplicationLag = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_site_replication_lag_seconds",
		Help: "Replication lag of the site; absent while it is unknown.",
	}, ofSite)

	// ErrantTransactions counts transactions that a site has and the active site lacks.
	ErrantTransactions = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_site_errant_transactions",
		Help: "Transactions that the site has and the active site lacks.",
	}, ofSite)

	// Fences counts the writers that the operator kept out; what a sidecar fences by itself is in the sidecar's metrics.
	Fences = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "operator_fence_total",
		Help: "Fences of a site that the operator ordered: of the old active site once it is proven (Planned, Emergency), or of a writer beside the active site (ForeignWriter).",
	}, append(append([]string(nil), ofSite...), "cause"))

	// BadAnswers counts what a sidecar answered instead of its report.
	BadAnswers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "operator_site_bad_answers_total",
		Help: "Answers to a push that are no report of the site: BadStatement, Refused, TooLarge, Unreadable or OtherPod. Such a site counts as silent.",
	}, append(append([]string(nil), ofSite...), "reason"))

	// Decisions counts decisions of the failover loop, by verdict.
	Decisions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "operator_decisions_total",
		Help: "Decisions of the failover loop, by verdict.",
	}, append(append([]string(nil), ofGroup...), "verdict"))

	// Clones counts finished clones of a site, by outcome.
	Clones = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "operator_site_clones_total",
		Help: "Clones of a site from the active site, by outcome.",
	}, append(append([]string(nil), ofSite...), "outcome"))

	buildInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operator_build_info",
		Help: "Always 1; the labels say which build of the operator this is.",
	}, []string{"version", "revision", "goversion"})
)

// deleter is what every vector of series can do.
type deleter interface {
	DeletePartialMatch(prometheus.Labels) int
}

var (
	all = append([]prometheus.Collector{
		GroupReady, ClaimedElsewhere, ActiveSite, Epoch, Failovers, FailoverDuration, ReplicationLag, ErrantTransactions, Fences, BadAnswers,
		Decisions, Clones, ForecastTransactions, ForecastSeconds, ForecastBlocked, EscrowPushes, Refused, buildInfo,
	}, keyringAll...)
	siteSeries  = append([]deleter{ActiveSite, ReplicationLag, ErrantTransactions, Fences, Clones, BadAnswers}, keyringSeries...)
	groupSeries = append([]deleter{GroupReady, ClaimedElsewhere, Epoch, Failovers, FailoverDuration, Decisions,
		ForecastTransactions, ForecastSeconds, ForecastBlocked}, siteSeries...)
)

// Register registers every metric, for main with controller-runtime's metrics.Registry.
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

// SetActiveSite sets the one-hot series of a group. An empty active site sets all to 0.
func SetActiveSite(namespace, group, active string, sites []string) {
	for _, site := range sites {
		value := 0.0
		if site == active {
			value = 1
		}
		ActiveSite.WithLabelValues(namespace, group, site).Set(value)
	}
}

// SetReplicationLag sets a site's lag; nil means unknown and removes the series, so that no alert trusts an old value.
func SetReplicationLag(namespace, group, site string, seconds *float64) {
	if seconds == nil {
		ReplicationLag.DeleteLabelValues(namespace, group, site)
		return
	}
	ReplicationLag.WithLabelValues(namespace, group, site).Set(*seconds)
}

// ForgetGroup deletes every series of a group.
func ForgetGroup(namespace, group string) {
	forgetBlocked(namespace, group)
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

// Forecast is what SetForecast shows.
type Forecast struct {
	// Known is false while the group is not healthy: then there is nothing to forecast.
	Known bool
	// Blocked is the reason for which nothing would happen; empty if something would.
	Blocked string
	// Transactions would be lost; negative if unknown. Seconds is nil if unknown.
	Transactions float64
	Seconds      *float64
}

// blockedSeries holds under which reason each group's ForecastBlocked stands. To look for it among the series of all groups
// would take each poll longer the more groups there are.
var (
	blockedMu     sync.Mutex
	blockedSeries = map[[2]string]string{} // by namespace and group
)

// SetForecast shows a forecast; what is not known any more goes.
func SetForecast(namespace, group string, f Forecast) {
	setBlocked(namespace, group, f.Blocked)
	if f.Known && f.Transactions >= 0 {
		ForecastTransactions.WithLabelValues(namespace, group).Set(f.Transactions)
	} else {
		ForecastTransactions.DeleteLabelValues(namespace, group)
	}
	if f.Known && f.Seconds != nil {
		ForecastSeconds.WithLabelValues(namespace, group).Set(*f.Seconds)
	} else {
		ForecastSeconds.DeleteLabelValues(namespace, group)
	}
}

func setBlocked(namespace, group, reason string) {
	blockedMu.Lock()
	defer blockedMu.Unlock()
	key := [2]string{namespace, group}
	if before := blockedSeries[key]; before != "" && before != reason {
		ForecastBlocked.DeleteLabelValues(namespace, group, before)
	}
	if blockedSeries[key] = reason; reason != "" {
		ForecastBlocked.WithLabelValues(namespace, group, reason).Set(1)
	}
}

func forgetBlocked(namespace, group string) {
	setBlocked(namespace, group, "")
	blockedMu.Lock()
	defer blockedMu.Unlock()
	delete(blockedSeries, [2]string{namespace, group})
}
