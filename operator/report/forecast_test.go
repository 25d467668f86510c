// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mysql-mfg/mfg/operator/report"
)

// TestForecastShowsWhatIsKnown: one reason at a time, nothing that is not known any more, and no other group's series touched.
func TestForecastShowsWhatIsKnown(t *testing.T) {
	seconds := 2.5
	report.SetForecast("ns", "other", report.Forecast{Blocked: "CandidateLagging"})
	report.SetForecast("ns", "f", report.Forecast{Known: true, Blocked: "NoQuorum", Transactions: 7, Seconds: &seconds})
	report.SetForecast("ns", "f", report.Forecast{Known: true, Blocked: "CandidateLagging", Transactions: 7, Seconds: &seconds})
	if n := testutil.CollectAndCount(report.ForecastBlocked); n != 2 {
		t.Errorf("%d reasons for two groups", n)
	}
	if got := testutil.ToFloat64(report.ForecastBlocked.WithLabelValues("ns", "f", "CandidateLagging")); got != 1 {
		t.Errorf("the reason that stands is %v", got)
	}
	if got := testutil.ToFloat64(report.ForecastTransactions.WithLabelValues("ns", "f")); got != 7 {
		t.Errorf("transactions = %v", got)
	}
	report.SetForecast("ns", "f", report.Forecast{Known: true, Transactions: -1})
	for name, n := range map[string]int{
		"transactions": testutil.CollectAndCount(report.ForecastTransactions), "seconds": testutil.CollectAndCount(report.ForecastSeconds),
		"reasons beside the other group's": testutil.CollectAndCount(report.ForecastBlocked) - 1,
	} {
		if n != 0 {
			t.Errorf("what is not known any more: %d %s", n, name)
		}
	}
	report.SetForecast("ns", "f", report.Forecast{Blocked: "Paused"})
	report.ForgetGroup("ns", "f")
	report.ForgetGroup("ns", "other")
	if n := testutil.CollectAndCount(report.ForecastBlocked); n != 0 {
		t.Errorf("%d series of groups that are gone", n)
	}
}
