// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

func TestMayLeave(t *testing.T) {
	now := at(2 * time.Second)
	told := func(s State, epoch int64, active string, hold bool, windows ...wire.Window) State {
		w := statement(epoch, active)
		w.Hold, w.Windows = hold, windows
		return keep(adopt(s, fromOperator(w, time.Second), now))
	}
	fenced := observe(newSite(), readOnly)
	window := wire.Window{Site: "a", Purpose: wire.WindowClone, Deadline: now.Wall.Add(time.Minute)}
	inWindow := Facts{Running: true, Process: "7", Answered: true, Writable: true, Offline: true}
	for name, tc := range map[string]struct {
		reason string
		state  State
		want   Reason
	}{
		"a replica":             {"nobody writes here", told(fenced, 5, "b", false), ""},
		"nobody is active yet":  {"there is no role to move", fenced, ""},
		"the active site":       {"clients write here", openSite(), StillOpen},
		"the active site, shut": {"it is about to be opened, or to lose the role", closedSite(), StillNamed},
		"named, but gone":       {"mysqld may come back", observe(closedSite(), Facts{}), StillNamed},
		"on the way to another": {"the new active site still fetches what it lacks", told(fenced, 6, "b", true), Held},
		"another one is open":   {"the change is over", told(told(fenced, 6, "b", true), 6, "b", false), ""},
		"not fenced yet":        {"it may still accept commits", told(openSite(), 6, "b", false), StillOpen},
		"silent, not seen shut": {"silence proves nothing", told(observe(openSite(), Facts{Running: true, Process: "7"}), 6, "b", false), StillOpen},
		"a clone is made":       {"what is written is the clone's", observe(told(fenced, 5, "b", false, window), inWindow), ""},
		"after the window":      {"it should be fenced", observe(told(fenced, 5, "b", false), inWindow), StillOpen},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MayLeave(tc.state, now); got.Reason != tc.want || (got.Message == "") != (tc.want == "") {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}
