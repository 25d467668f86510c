// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// worstLag is the greatest lag of the attached replicas, in steps: the operator writes the status when it changes, and
// an exact lag would change it with every poll. The exact figure is in GET /status and the metrics.
func worstLag(s failover.Snapshot, views []failover.View) string {
	worst, any := 0.0, false
	for _, v := range views {
		site, _ := s.Site(v.Name)
		if v.State != v1alpha1.SiteReplica || site.MySQL.LagSeconds == nil {
			continue
		}
		worst, any = max(worst, *site.MySQL.LagSeconds), true
	}
	if !any {
		return ""
	}
	return lagStep(worst)
}

func lagStep(seconds float64) string {
	switch {
	case seconds < 1:
		return "0s"
	case seconds < 10:
		return "<10s"
	case seconds < 60:
		return "<1m"
	case seconds < 600:
		return "<10m"
	}
	return ">10m"
}

// lagSteps are the steps in which the status tells the lag, in rising order.
var lagSteps = []string{"", "0s", "<10s", "<1m", "<10m", ">10m"}

// lossSteps are the same for the transactions that would be lost.
var lossSteps = []string{"", "0", "<10", "<100", "<1000", "<10000", ">=10000"}

func lossStep(transactions int64) string {
	if transactions < 0 {
		return ""
	}
	for i, limit := range []int64{1, 10, 100, 1000, 10000} {
		if transactions < limit {
			return lossSteps[i+1]
		}
	}
	return lossSteps[len(lossSteps)-1]
}

// settledStep is the step that the status shows. A higher step shows at once, a lower one after the time that a forecast must
// last, or a lag near the end of a step would write the status with every poll. The zero value is ready to use.
type settledStep struct {
	shown string
	since time.Time
}

func (l *settledStep) settle(steps []string, now string, at time.Time) string {
	if slices.Index(steps, now) >= slices.Index(steps, l.shown) || now == "" || at.Sub(l.since) >= forecastStands {
		l.shown, l.since = now, at
	}
	return l.shown
}

// forecastStands is how long another forecast must last before the status shows it. Under load two equally good replicas
// change ranks with every poll; GET /status and the metrics show that, but it must not cause a write of the status.
const forecastStands = 10 * time.Second

// settledForecast is the forecast that the status shows, and the one that may replace it. The zero value is ready to use.
type settledForecast struct {
	shown, next *v1alpha1.Forecast
	since       time.Time
	// seen is when each obstacle was seen last, shown or not.
	seen map[v1alpha1.Reason]time.Time
}

// settle returns the forecast to show. The first forecast, the lack of one, and an obstacle that appears show at once: for 10 s
// more, a group must not promise what would not happen.
func (f *settledForecast) settle(now *v1alpha1.Forecast, at time.Time) *v1alpha1.Forecast {
	if now == nil || f.shown == nil || f.appears(now.BlockedBy, at) {
		f.shown, f.next = now, nil
		f.note(now, at)
		return f.shown
	}
	f.note(now, at)
	switch {
	case *now == *f.shown:
		f.next = nil
	case f.next == nil || !f.alike(*now, *f.next):
		f.next, f.since = now, at
	case at.Sub(f.since) >= forecastStands:
		f.shown, f.next = now, nil
	}
	return f.shown
}

// appears is true for an obstacle that the status does not show. One that was there a moment ago alternates with another, and
// waits like everything else.
func (f *settledForecast) appears(obstacle v1alpha1.Reason, at time.Time) bool {
	if obstacle == "" || obstacle == f.shown.BlockedBy {
		return false
	}
	seen, was := f.seen[obstacle]
	return !was || at.Sub(seen) >= forecastStands
}

func (f *settledForecast) note(now *v1alpha1.Forecast, at time.Time) {
	if f.seen == nil {
		f.seen = map[v1alpha1.Reason]time.Time{}
	}
	if now != nil {
		f.seen[now.BlockedBy] = at
	}
}

// alike compares two forecasts that are not the shown one. If they name another site or obstacle than the shown one, their
// wording does not matter: it may count transactions.
func (f *settledForecast) alike(a, b v1alpha1.Forecast) bool {
	same := a.Site == b.Site && a.BlockedBy == b.BlockedBy
	if same && (a.Site != f.shown.Site || a.BlockedBy != f.shown.BlockedBy) {
		return true
	}
	return a == b
}

// settledLoss is what the status says would be lost. The zero value is ready to use.
type settledLoss struct {
	site              string
	transactions, lag settledStep
}

// settle adds it to the shown forecast. It says nothing about another site than that one.
func (l *settledLoss) settle(shown *v1alpha1.Forecast, now *failover.Forecast, at time.Time) *v1alpha1.Forecast {
	if shown == nil || shown.Site == "" || now == nil {
		*l = settledLoss{}
		return shown
	}
	if l.site != shown.Site {
		*l = settledLoss{site: shown.Site}
	}
	if now.Site == shown.Site {
		lag := ""
		if now.LostSeconds != nil {
			lag = lagStep(*now.LostSeconds)
		}
		l.transactions.settle(lossSteps, lossStep(now.LostTransactions), at)
		l.lag.settle(lagSteps, lag, at)
	}
	out := *shown
	out.LostTransactions, out.Lag = l.transactions.shown, l.lag.shown
	return &out
}

// toForecast returns the part of a forecast that does not change with every poll; the loss is added in steps.
func toForecast(f *failover.Forecast) *v1alpha1.Forecast {
	if f == nil {
		return nil
	}
	return &v1alpha1.Forecast{Site: f.Site, Rule: f.Rule, BlockedBy: f.BlockedBy, Message: f.Message}
}

// Settled remembers what the status shows of figures that change with every poll. The status follows them slowly. The zero value is ready to use.
type Settled struct {
	forecast settledForecast
	lag      settledStep
	loss     settledLoss
}

// Put puts the lag and the forecast into a status.
func (k *Settled) Put(status *v1alpha1.MysqlFailoverGroupStatus, s failover.Snapshot, d failover.Decision) {
	status.ReplicationLag = k.lag.settle(lagSteps, worstLag(s, d.Views), s.Now)
	if shown := k.forecast.shown; shown != nil && shown.Site == status.ActiveSite {
		k.forecast, k.loss = settledForecast{}, settledLoss{} // the role has moved to that site: the shown forecast is wrong now, not just old
	}
	status.Forecast = k.loss.settle(k.forecast.settle(toForecast(d.Forecast), s.Now), d.Forecast, s.Now)
}
