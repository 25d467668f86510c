// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// worstLag is the greatest lag of the attached replicas, in steps: the status is written when it says something else,
// and a lag in full would make that every poll. The exact figure is in GET /status and the metrics.
func worstLag(s failover.Snapshot, views []failover.View) string {
	worst, any := 0.0, false
	for _, v := range views {
		site, _ := s.Site(v.Name)
		if v.State != v1alpha1.SiteReplica || site.MySQL.LagSeconds == nil {
			continue
		}
		worst, any = max(worst, *site.MySQL.LagSeconds), true
	}
	switch {
	case !any:
		return ""
	case worst < 1:
		return "0s"
	case worst < 10:
		return "<10s"
	case worst < 60:
		return "<1m"
	case worst < 600:
		return "<10m"
	}
	return ">10m"
}

// lagSteps are the steps in which the status tells the lag, from less to more.
var lagSteps = []string{"", "0s", "<10s", "<1m", "<10m", ">10m"}

// settledLag is the step of the lag that the status shows: more at once, less when it stood for as long as a forecast must, or a
// lag around the end of a step would write the status with every poll. The zero value is ready to use.
type settledLag struct {
	shown string
	since time.Time
}

func (l *settledLag) settle(now string, at time.Time) string {
	if slices.Index(lagSteps, now) >= slices.Index(lagSteps, l.shown) || now == "" || at.Sub(l.since) >= forecastStands {
		l.shown, l.since = now, at
	}
	return l.shown
}

// forecastStands is how long another forecast must stand before the status says it. Under load the ranks of two replicas that
// are equally good change with every poll; GET /status and the metrics say that, the status must not be written for it.
const forecastStands = 10 * time.Second

// settledForecast is the forecast that the status shows, and the one that may take its place. The zero value is ready to use.
type settledForecast struct {
	shown, next *v1alpha1.Forecast
	since       time.Time
}

// settle returns the forecast to show. The first one, and that there is none, are shown at once.
func (f *settledForecast) settle(now *v1alpha1.Forecast, at time.Time) *v1alpha1.Forecast {
	if now == nil || f.shown == nil {
		f.shown, f.next = now, nil
		return f.shown
	}
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

// alike compares two forecasts that are not the shown one. If they name another site or another obstacle than it does, the
// wording does not matter: it may count transactions.
func (f *settledForecast) alike(a, b v1alpha1.Forecast) bool {
	same := a.Site == b.Site && a.BlockedBy == b.BlockedBy
	if same && (a.Site != f.shown.Site || a.BlockedBy != f.shown.BlockedBy) {
		return true
	}
	return a == b
}
