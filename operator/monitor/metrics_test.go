// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// TestForecastShowsWhatIsKnown: one reason at a time, nothing that is not known any more, and no other group's series touched.
func TestForecastShowsWhatIsKnown(t *testing.T) {
	seconds := 2.5
	showForecast("ns", "other", forecastValues{Blocked: "CandidateLagging"})
	showForecast("ns", "f", forecastValues{Known: true, Blocked: "NoQuorum", Transactions: 7, Seconds: &seconds})
	showForecast("ns", "f", forecastValues{Known: true, Blocked: "CandidateLagging", Transactions: 7, Seconds: &seconds})
	if n := testutil.CollectAndCount(forecastBlocked); n != 2 {
		t.Errorf("%d reasons for two groups", n)
	}
	if got := testutil.ToFloat64(forecastBlocked.WithLabelValues("ns", "f", "CandidateLagging")); got != 1 {
		t.Errorf("the reason that stands is %v", got)
	}
	if got := testutil.ToFloat64(forecastTransactions.WithLabelValues("ns", "f")); got != 7 {
		t.Errorf("transactions = %v", got)
	}
	showForecast("ns", "f", forecastValues{Known: true, Transactions: -1})
	for name, n := range map[string]int{
		"transactions": testutil.CollectAndCount(forecastTransactions), "seconds": testutil.CollectAndCount(forecastSeconds),
		"reasons beside the other group's": testutil.CollectAndCount(forecastBlocked) - 1,
	} {
		if n != 0 {
			t.Errorf("what is not known any more: %d %s", n, name)
		}
	}
	showForecast("ns", "f", forecastValues{Blocked: "Paused"})
	metrics.ForgetGroup("ns", "f")
	metrics.ForgetGroup("ns", "other")
	if n := testutil.CollectAndCount(forecastBlocked); n != 0 {
		t.Errorf("%d series of groups that are gone", n)
	}
}

// TestSeriesOfAGroup: the active site is one of its sites, a lag that is not known has no series, and nothing of a site or a group that is
// gone is left.
func TestSeriesOfAGroup(t *testing.T) {
	showActiveSite("ns", "g", "a", []string{"a", "b"})
	lag := 1.5
	showReplicationLag("ns", "g", "b", &lag)
	if got := testutil.ToFloat64(activeSite.WithLabelValues("ns", "g", "a")); got != 1 {
		t.Errorf("active site a = %v, want 1", got)
	}
	if got := testutil.ToFloat64(activeSite.WithLabelValues("ns", "g", "b")); got != 0 {
		t.Errorf("active site b = %v, want 0", got)
	}
	showReplicationLag("ns", "g", "b", nil)
	if got := testutil.CollectAndCount(replicationLag); got != 0 {
		t.Errorf("an unknown lag left %d series", got)
	}
	metrics.ForgetSite("ns", "g", "b")
	if got := testutil.CollectAndCount(activeSite); got != 1 {
		t.Errorf("series of active site after forgetting one of two sites = %d, want 1", got)
	}
	metrics.ForgetGroup("ns", "g")
	if got := testutil.CollectAndCount(activeSite); got != 0 {
		t.Errorf("%d series of a group that is gone", got)
	}
}
