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

// Countdown draws the one wait that the silence of the active site has begun: the lease after which another site may be opened. The
// gate knows it exactly; until it was asked, the time since the site's last answer to the operator counts against the lease. A peer may
// have renewed that, so the words say so.
func (v View) Countdown(width int) canvas.Block {
	site, waits := v.silent()
	if !waits {
		return nil
	}
	if v.Rule != nil && !v.Rule.Until.IsZero() {
		left := v.Rule.Until.Sub(v.Now)
		if left <= 0 {
			return v.count("Lease", 1, fmt.Sprintf("that of %s ran out %s ago", site.Name, paint.Seconds(-left)), width)
		}
		words := fmt.Sprintf("%s until the lease of %s runs out (%s), or until it is proven fenced", paint.Seconds(left), site.Name,
			v.Rule.Until.UTC().Format("15:04:05Z"))
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
		return v.count("Countdown", float64(quiet)/float64(lease), words+"runs out in "+paint.Seconds(left)+", unless a peer renews it", width)
	}
	return v.count("Lease", 1, words+"ran out "+paint.Seconds(quiet-lease)+" ago, unless a peer renewed it", width)
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
