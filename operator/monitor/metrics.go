// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"sync"

	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// groupReady is 1 for a group whose condition Ready is true, else 0.
var groupReady = metrics.Gauge(metrics.Group, "operator_group_ready",
	"1 if the group is ready, else 0.")

// activeSite is one-hot over the sites of a group; set it with showActiveSite.
var activeSite = metrics.Gauge(metrics.Site, "operator_active_site",
	"1 for the active site of the group, 0 for the others.")

// epochShown is the group's epoch.
var epochShown = metrics.Gauge(metrics.Group, "operator_epoch",
	"Epoch of the group; it grows by one with every change of the active site.")

// forecastTransactions is what an emergency failover would lose now; set it with showForecast.
var forecastTransactions = metrics.Gauge(metrics.Group, "operator_forecast_lost_transactions",
	"Transactions that an emergency failover would lose if the active site were lost now; absent while unknown.")

// forecastSeconds is the lag of the site that would take over.
var forecastSeconds = metrics.Gauge(metrics.Group, "operator_forecast_lost_seconds",
	"Replication lag of the site that would take over if the active site were lost now; absent while unknown.")

// forecastBlocked is 1 with the reason that would block an emergency failover now.
var forecastBlocked = metrics.Gauge(metrics.Group, "operator_forecast_blocked",
	"1 with the reason why an emergency failover would not happen now without an order; absent if it would.", "reason")

// replicationLag is the age of the newest transaction that a replica has not applied.
var replicationLag = metrics.Gauge(metrics.Site, "operator_site_replication_lag_seconds",
	"Replication lag of the site; absent while it is unknown.")

// errantTransactions counts transactions that a site has and the active site lacks.
var errantTransactions = metrics.Gauge(metrics.Site, "operator_site_errant_transactions",
	"Transactions that the site has and the active site lacks.")

// badAnswers counts the answers of a sidecar that were not its report.
var badAnswers = metrics.Counter(metrics.Site, "operator_site_bad_answers_total",
	"Answers to a push that are no report of the site: BadStatement, Refused, TooLarge, Unreadable, Unauthenticated or OtherPod. Such a site counts as silent.", "reason")

// decisions counts decisions of the failover loop, by verdict.
var decisions = metrics.Counter(metrics.Group, "operator_decisions_total",
	"Decisions of the failover loop, by verdict.", "verdict")

// Reasons of badAnswers.
const (
	answerBadStatement = "BadStatement"
	answerRefused      = "Refused"
	answerTooLarge     = "TooLarge"
	answerUnreadable   = "Unreadable"
	answerOtherPod     = "OtherPod"
	// answerUnauthenticated is a report without the MAC of the site's key, or with another one.
	answerUnauthenticated = "Unauthenticated"
)

// showActiveSite sets the one-hot series of a group. An empty active site sets all to 0.
func showActiveSite(namespace, group, active string, sites []string) {
	for _, site := range sites {
		value := 0.0
		if site == active {
			value = 1
		}
		activeSite.WithLabelValues(namespace, group, site).Set(value)
	}
}

// showReplicationLag sets a site's lag; nil means unknown and removes the series, so that no alert trusts an old value.
func showReplicationLag(namespace, group, site string, seconds *float64) {
	if seconds == nil {
		replicationLag.DeleteLabelValues(namespace, group, site)
		return
	}
	replicationLag.WithLabelValues(namespace, group, site).Set(*seconds)
}

// forecastValues is what showForecast shows.
type forecastValues struct {
	// Known is false while the group is not healthy: then there is no forecast.
	Known bool
	// Blocked is why no site would take over; empty if one would.
	Blocked string
	// Transactions would be lost; negative if unknown. Seconds is nil if unknown.
	Transactions float64
	Seconds      *float64
}

// blockedSeries holds the reason of each group's series of forecastBlocked. Searching the series of all groups for it would
// take each poll longer the more groups there are.
var (
	blockedMu     sync.Mutex
	blockedSeries = map[[2]string]string{} // by namespace and group
)

// showForecast shows a forecast, and removes the series of what is no longer known.
func showForecast(namespace, group string, f forecastValues) {
	setBlocked(namespace, group, f.Blocked)
	if f.Known && f.Transactions >= 0 {
		forecastTransactions.WithLabelValues(namespace, group).Set(f.Transactions)
	} else {
		forecastTransactions.DeleteLabelValues(namespace, group)
	}
	if f.Known && f.Seconds != nil {
		forecastSeconds.WithLabelValues(namespace, group).Set(*f.Seconds)
	} else {
		forecastSeconds.DeleteLabelValues(namespace, group)
	}
}

func setBlocked(namespace, group, reason string) {
	blockedMu.Lock()
	defer blockedMu.Unlock()
	key := [2]string{namespace, group}
	if before := blockedSeries[key]; before != "" && before != reason {
		forecastBlocked.DeleteLabelValues(namespace, group, before)
	}
	if blockedSeries[key] = reason; reason != "" {
		forecastBlocked.WithLabelValues(namespace, group, reason).Set(1)
	}
}

func forgetBlocked(namespace, group string) {
	setBlocked(namespace, group, "")
	blockedMu.Lock()
	defer blockedMu.Unlock()
	delete(blockedSeries, [2]string{namespace, group})
}

func init() { metrics.OnForgetGroup(forgetBlocked) }
