// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// barWidth is the width of a countdown's bar.
const barWidth = 12

// Countdown draws the one wait that matters: of a planned failover the time after which it is given up; else the one that the silence of
// the active site has begun, after which another site may be opened. The gate knows that exactly; until it was asked, the time since the
// site's last answer to the operator counts against the lease. A peer may have renewed that, so the words say so.
func (v View) Countdown(width int) canvas.Block {
	if out := v.plannedCountdown(width); out != nil {
		return out
	}
	site, waits := v.silent()
	if !waits {
		return nil
	}
	if v.Rule != nil && !v.Rule.Until.IsZero() {
		left, to := v.Rule.Until.Sub(v.Now), "another site"
		if t := v.transition(); t != nil {
			to = t.To
		}
		if left <= 0 {
			return v.count("Waited", 1, fmt.Sprintf("long enough for %s to stop, since %s; %s can open", site.Name, paint.Seconds(-left), to), width)
		}
		words := fmt.Sprintf("%s until %s can open (%s), or sooner if %s is proven fenced", paint.Seconds(left), to, v.Rule.Until.UTC().Format("15:04:05Z"), site.Name)
		return v.count("Countdown", 1-float64(left)/float64(v.lease()), words, width)
	}
	since := v.SilentSince(site.Name)
	if site.LastSeen != nil && site.LastSeen.After(since) {
		since = *site.LastSeen
	}
	if since.IsZero() {
		return nil // it was silent before the first look, and a wait without a known beginning has no known end
	}
	quiet, lease := max(0, v.Now.Sub(since)), v.lease()
	words := fmt.Sprintf("%s silent for %s; its lease of %s ", site.Name, paint.Seconds(quiet), paint.Seconds(lease))
	if left := lease - quiet; left > 0 {
		return v.count("Countdown", float64(quiet)/float64(lease), words+"ends in "+paint.Seconds(left)+", unless a peer renews it", width)
	}
	return v.count("Lease", 1, words+"ended "+paint.Seconds(quiet-lease)+" ago, unless a peer renewed it", width)
}

// plannedCountdown is how long a planned failover has left; nil while none is under way, or once it can only go on. A new leader of the
// operator gives it its whole time again, so at the end the words do not say that it is over.
func (v View) plannedCountdown(width int) canvas.Block {
	if v.Object == nil {
		return nil
	}
	began, limit, words := time.Time{}, time.Duration(0), ""
	switch t, p := v.transition(), v.Report.Planned; {
	case t != nil && t.Kind == v1alpha1.FailoverPlanned && t.Step == v1alpha1.TransitionFencing && t.From != t.To:
		began, limit = t.StartedAt.Time, v.Object.Spec.Failover.PlannedPauseTimeout.Duration
		words = "until the operator opens " + t.From + " again (plannedPauseTimeout)"
	case t == nil && p != nil && p.FinishedAt == nil && p.StartedAt != nil:
		began, limit = *p.StartedAt, v.Object.Spec.Failover.PlannedLagTimeout.Duration
		words = "until the operator refuses the failover (plannedLagTimeout); writes go on"
	}
	if limit <= 0 {
		return nil
	}
	left := max(0, limit-v.Now.Sub(began))
	return v.count("Countdown", 1-float64(left)/float64(limit), paint.Seconds(left)+" "+words, width)
}

func (v View) count(label string, share float64, words string, width int) canvas.Block {
	return v.Signs.Paragraph(canvas.Span{Text: label, Style: canvas.Warn}, v.Signs.Bar(share, barWidth)+" "+words, width)
}

// silent returns the site whose silence keeps writes out: the old active site of a change that waits for proof that it has stopped, or
// the active site of a group without a decision yet.
func (v View) silent() (report.Site, bool) {
	name, t := v.Report.ActiveSite, v.transition()
	if t != nil {
		name = t.From
		if t.Step == v1alpha1.TransitionOpening {
			return report.Site{}, false // the gate is passed: nothing waits for the lease
		}
	}
	for _, s := range v.Report.Sites {
		if s.Name == name && s.Reachable != nil && !*s.Reachable {
			return s, true
		}
	}
	return report.Site{}, false
}

// defaultLease is the API's default, for an object that an older API server wrote.
const defaultLease = 20 * time.Second

func (v View) lease() time.Duration {
	if v.Object == nil || v.Object.Spec.Sidecar.LeaseTimeout.Duration <= 0 {
		return defaultLease
	}
	return v.Object.Spec.Sidecar.LeaseTimeout.Duration
}
