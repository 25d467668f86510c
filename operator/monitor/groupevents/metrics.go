// SPDX-License-Identifier: Apache-2.0

package groupevents

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// failovers counts changes of the active site, by reason and outcome.
var failovers = metrics.Counter(metrics.Group, "operator_failovers_total",
	"Changes of the active site, by reason and outcome.", "reason", "outcome")

// failoverDuration is the time from the detection of trouble to an open active site.
var failoverDuration = metrics.Histogram(metrics.Group, prometheus.HistogramOpts{
	Name:                            "operator_failover_duration_seconds",
	Help:                            "Time from the detection of trouble, or from the request, to an open active site.",
	Buckets:                         []float64{0.5, 1, 2, 5, 10, 15, 20, 25, 30, 45, 60, 120, 300},
	NativeHistogramBucketFactor:     1.1,
	NativeHistogramMaxBucketNumber:  100,
	NativeHistogramMinResetDuration: 0,
}, "kind")

// fences counts the writers that the operator kept out; the sidecars' own metrics count what they fence on their own.
var fences = metrics.Counter(metrics.Site, "operator_fence_total",
	"Fences of a site that the operator ordered: of the old active site once it is proven (Planned, Emergency), or of a writer beside the active site (ForeignWriter).", "cause")
