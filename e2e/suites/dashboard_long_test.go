// SPDX-License-Identifier: Apache-2.0

//go:build lab && dashboard

package suites

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// unreachableCard is the head of the card of a candidate that does not answer.
var unreachableCard = regexp.MustCompile(`primary-candidate +Unreachable`)

// TestDashboardShowsALostSite: the dashboard while the node of the active site loses its power: the sites, the fault, the failover as it unfolds, and
// the new active site.
func TestDashboardShowsALostSite(t *testing.T) {
	g, before := whole(t)
	from, to := before.Status.ActiveSite, otherCandidate(t, before)
	fault, err := stage.FaultNamed("node-kill")
	if err != nil {
		t.Fatal(err)
	}
	afterCooldown(t)
	witnesses(t, g)
	s := dashboard(t, "mfg: the node of the active site loses its power")
	s.until(t, time.Minute, "Before", "All is well. Each site has a card; `*` marks the active one, and `If lost` says what would happen if it were lost now.",
		func(frame string) error {
			return lacks(frame, " live ", "Status    Ready", "* "+from, "takes writes", "If lost")
		})
	sleep(t, 10*time.Second) // for the plots
	killed := time.Now()
	s.cast.Mark(killed, "The node of "+from+" loses its power")
	if _, err := g.Break(t.Context(), fault, from); err != nil {
		t.Fatal(err)
	}
	s.until(t, time.Minute, "The fault", "Neither the sidecar nor MySQL of "+from+" answers any more. Its lease may still run: no other site may write yet.",
		func(frame string) error { return lacks(frame, "Unreachable", from+" silent ") })
	s.until(t, time.Minute, "The failover", "The operator has persisted the new epoch and will open "+to+". It waits for the proof that "+from+" has stopped: the end of its lease.",
		func(frame string) error {
			return lacks(frame, fmt.Sprintf("Changing  emergency %s → %s under epoch", from, to), "[x]", "detected", "decided", "[>]", "[ ]", "will take writes")
		})
	after := []string{fmt.Sprintf("Failover  emergency %s → %s, epoch", from, to), "* " + to, "takes writes", "detected,", "opened", "Evidence"}
	s.until(t, 2*time.Minute, "The new active site", to+" takes writes. The time line shows each step with the time since the first sign of trouble, to scale; below it is the proof.",
		func(frame string) error { return lacks(frame, after...) })
	if err := g.Undo(t.Context(), fault, from); err != nil {
		t.Fatal(err)
	}
	s.cast.Mark(time.Now(), "The node of "+from+" has power again")
	s.until(t, comeBack, "The lost site is back", "What "+from+" alone held is counted: the loss is exact now. If it is not 0, "+from+" is kept for a person to look at.",
		func(frame string) error {
			// The news go on to tell of the time when it was unreachable; its card does not.
			if unreachableCard.MatchString(frame) || strings.Contains(frame, "loss not known") || strings.Contains(frame, "at least") {
				return errors.New("the loss is not known yet")
			}
			return lacks(frame, "* "+to, " lost")
		})
	s.quit(t)
	keep(t, "failover.cast", s.record(t, "* "+to))
	keep(t, "dashboard-failover.md", framesPage(s.shots, killed))
}

// framesPage is the page of the documentation that the frames make.
func framesPage(shots []shot, fault time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by `+"`make docs-frames`"+` from what tmux showed; not by hand. -->

# A failover on the dashboard

What `+"`kubectl mfg dashboard %s`"+` shows on a terminal of %dx%d while the node of the active site loses its power: captured
from a real group on the lab by a test (`+"`make test-dashboard`"+`). The same as a recording:
[recordings/failover.cast](recordings/failover.cast), for `+"`asciinema play`"+`. How to read it: [dashboard.md](dashboard.md).
`, name, screenWidth, screenHeight)
	for _, s := range shots {
		when := fmt.Sprintf("%.1f s after the loss of power", s.at.Sub(fault).Seconds())
		if s.at.Before(fault) {
			when = "before the loss of power"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s: %s\n\n```text\n%s```\n", s.title, strings.ToUpper(when[:1])+when[1:], s.words, s.frame)
	}
	return b.Bytes()
}
