// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestAForecastThatFlapsIsNotWritten: under load two replicas overtake each other with every poll, and what a budget forbids
// changes in numbers. The status must stand still meanwhile, and follow what lasts.
func TestAForecastThatFlapsIsNotWritten(t *testing.T) {
	b := &v1alpha1.Forecast{Site: "b", Rule: "MostTransactions", Message: "b would take over"}
	c := &v1alpha1.Forecast{Site: "c", Rule: "MostTransactions", Message: "c would take over"}
	over := func(n int) *v1alpha1.Forecast {
		return &v1alpha1.Forecast{Site: "b", BlockedBy: "LossBudget", Message: fmt.Sprintf("b lacks at least %d transactions", n)}
	}
	for name, tc := range map[string]struct {
		see  func(poll int) *v1alpha1.Forecast
		most int
		last string
	}{
		"two replicas overtake each other": {func(i int) *v1alpha1.Forecast { return []*v1alpha1.Forecast{b, c}[i%2] }, 1, "b"},
		"the budget is over now and then": {func(i int) *v1alpha1.Forecast {
			if i%2 == 1 {
				return over(i)
			}
			return b
		}, 2, "bLossBudget"},
		"two obstacles take turns": {func(i int) *v1alpha1.Forecast {
			if i%2 == 1 {
				return over(i)
			}
			return &v1alpha1.Forecast{Site: "b", BlockedBy: "SiteMayStillVouch"}
		}, 2, "bLossBudget"},
		"another candidate lasts": {func(i int) *v1alpha1.Forecast {
			if i > 3 {
				return c
			}
			return b
		}, 2, "c"},
		"the budget is over for good, in ever other numbers": {func(i int) *v1alpha1.Forecast {
			if i > 3 {
				return over(i)
			}
			return b
		}, 2, "bLossBudget"},
		"no forecast at once": {func(i int) *v1alpha1.Forecast {
			if i == 29 {
				return nil
			}
			return b
		}, 2, ""},
	} {
		var f settledForecast
		var shown *v1alpha1.Forecast
		writes := 0
		at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		for i := range 30 {
			at = at.Add(2 * time.Second)
			now := f.settle(tc.see(i), at)
			if shown == nil || now == nil || *now != *shown {
				writes++
			}
			shown = now
		}
		last := ""
		if shown != nil {
			last = shown.Site + string(shown.BlockedBy)
		}
		if writes != tc.most || last != tc.last {
			t.Errorf("%s: %d writes, want %d; ends with %q, want %q", name, writes, tc.most, last, tc.last)
		}
	}
}

// TestALagAroundAStepIsNotWritten: more is shown at once, less once it lasts.
func TestALagAroundAStepIsNotWritten(t *testing.T) {
	var l settledStep
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	step := func(now string) string {
		at = at.Add(2 * time.Second)
		return l.settle(lagSteps, now, at)
	}
	if step("0s") != "0s" || step("<10s") != "<10s" {
		t.Error("a lag that grows is not shown at once")
	}
	for range 20 {
		if step("0s") != "<10s" || step("<10s") != "<10s" {
			t.Fatal("a lag that comes and goes is written with every poll")
		}
	}
	for range 4 {
		step("0s")
	}
	if got := step("0s"); got != "0s" {
		t.Errorf("after 10 s without lag %q is shown", got)
	}
	if got := step(""); got != "" {
		t.Errorf("without a replica %q is shown", got)
	}
}

// TestAReceiverThatTriesAgainIsNotWritten: MySQL counts its attempts in the error, one a second, for as long as the source is
// out of reach.
func TestAReceiverThatTriesAgainIsNotWritten(t *testing.T) {
	message := func(n int) string {
		return stable(failover.View{State: v1alpha1.SiteDetached, Message: fmt.Sprintf("receiver stopped: Error reconnecting to source "+
			"'replication@mysql-orders-east.shop.svc:3306'. This was attempt %d/86400, with a delay of 1 seconds between attempts. Message: Can't connect", n)})
	}
	if message(1) != message(2) || !strings.Contains(message(1), "svc:3306'. Message: Can't connect") {
		t.Errorf("got %q, then %q", message(1), message(2))
	}
}

// TestTheForecastSaysWhatWouldBeLost: in steps, more at once, and never the figures of another site than the one that it names.
func TestTheForecastSaysWhatWouldBeLost(t *testing.T) {
	var f settledForecast
	var l settledLoss
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	said := func(site string, lost int64, lag float64) string {
		at = at.Add(2 * time.Second)
		now := &failover.Forecast{Site: site, LostTransactions: lost, LostSeconds: &lag}
		if lag < 0 {
			now.LostSeconds = nil
		}
		out := l.settle(f.settle(toForecast(now), at), now, at)
		return out.Site + " " + out.LostTransactions + " " + out.Lag
	}
	for i, step := range []struct {
		site string
		lost int64
		lag  float64
		want string
	}{
		{"b", 0, 0, "b 0 0s"},
		{"b", 9, 0.5, "b <10 0s"},
		{"b", 99, 3, "b <100 <10s"},
		{"b", 0, 0, "b <100 <10s"}, // it was more a moment ago
		{"c", 5000, 90, "b <100 <10s"},
		{"b", 12345, 700, "b >=10000 >10m"},
		{"b", -1, -1, "b  "},
	} {
		if got := said(step.site, step.lost, step.lag); got != step.want {
			t.Errorf("%d: %q, want %q", i, got, step.want)
		}
	}
	for range 7 {
		said("c", 50, 3)
	}
	if got := said("c", 50, 3); got != "c <100 <10s" {
		t.Errorf("another site: %q", got)
	}
	if l.settle(nil, nil, at) != nil {
		t.Error("a loss is forecast where nothing is")
	}
}

// TestAnObstacleIsShownAtOnce: whoever reads that a failover would happen rests on it. That it would happen after all may wait.
func TestAnObstacleIsShownAtOnce(t *testing.T) {
	var f settledForecast
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	see := func(site string, obstacle v1alpha1.Reason) string {
		at = at.Add(2 * time.Second)
		out := f.settle(&v1alpha1.Forecast{Site: site, BlockedBy: obstacle}, at)
		return out.Site + " " + string(out.BlockedBy)
	}
	for i, step := range []struct{ site, obstacle, want string }{
		{"b", "", "b "},
		{"b", "LossBudget", "b LossBudget"},
		{"b", "ModeManual", "b ModeManual"},
		{"", "NoFitCandidate", " NoFitCandidate"},
		{"b", "", " NoFitCandidate"},
		{"c", "", " NoFitCandidate"},
		{"b", "ModeManual", " NoFitCandidate"}, // shown a moment ago
		{"b", "Paused", "b Paused"},
	} {
		if got := see(step.site, v1alpha1.Reason(step.obstacle)); got != step.want {
			t.Errorf("%d: %q, want %q", i, got, step.want)
		}
	}
	at = at.Add(forecastStands)
	if got := see("b", "LossBudget"); got != "b LossBudget" {
		t.Errorf("an obstacle of long ago: %q", got)
	}
}
