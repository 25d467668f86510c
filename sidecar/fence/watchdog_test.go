// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// I4: what the supervisor of mysqld is told in each state. It kills mysqld at that moment if this sidecar hangs now.
func TestWatchI4(t *testing.T) {
	now := at(10 * time.Second)
	inWindow := func() State {
		st := statement(5, "b")
		st.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: at(40 * time.Second).Wall}}
		f := writable
		f.Offline = true
		return observe(adopt(observe(newSite(), readOnly), pushed(st), now), f)
	}
	atOnce := Watchdog{Until: 14 * time.Second, Sooner: true} // an opening and a fence, 2 s each
	tests := map[string]struct {
		reason string
		s      State
		want   Watchdog
	}{
		"fenced":          {"it accepts no commit, so readers keep it whatever hangs", closedSite(), Watchdog{}},
		"not running":     {"mysqld starts read-only", observe(openSite(), Facts{}), Watchdog{}},
		"restarted":       {"so did this one", observe(openSite(), Facts{Running: true, Process: "8"}), Watchdog{}},
		"open":            {"the question was sent at 1s; lease 20s, ladder 2s", openSite(), Watchdog{Until: 23 * time.Second}},
		"being opened":    {"told before the SQL is sent", Opening(closedSite()), Watchdog{Until: 23 * time.Second}},
		"prolonged":       {"by an exchange", adopt(openSite(), fromPeer(statement(5, "a"), 9*time.Second), now), Watchdog{Until: 31 * time.Second}},
		"pushed":          {"nobody remembers when a push was sent", adopt(openSite(), pushed(statement(6, "a")), now), Watchdog{Until: 23 * time.Second}},
		"silent":          {"silence proves nothing", observe(openSite(), Facts{Running: true, Process: "7"}), Watchdog{Until: 23 * time.Second}},
		"another site":    {"its fence is due, and an exchange under the new epoch prolongs nothing", adopt(openSite(), fromPeer(statement(6, "b"), 9*time.Second), now), atOnce},
		"just started":    {"an earlier run may have opened it, and an earlier deadline stands", observe(newSite(), writable), atOnce},
		"opened by hand":  {"nobody vouches for it", observe(closedSite(), writable), atOnce},
		"opening unsure":  {"the statement may still be carried out", Opened(Opening(closedSite()), Unsure), atOnce},
		"fencing":         {"it is closed once that is proven", Fencing(openSite()), Watchdog{Until: 23 * time.Second}},
		"fenced for good": {"proven", Fenced(Fencing(openSite()), LastFence{Cause: wire.FenceMismatch, Stage: wire.FenceReadOnly}, true), Watchdog{}},
		"fence failed":    {"not proven", Fenced(Fencing(openSite()), LastFence{}, false), Watchdog{Until: 23 * time.Second}},
		"window":          {"30s are left of it, and a fence", inWindow(), Watchdog{Until: 42 * time.Second}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Watch(tc.s, now); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
	if got := Watch(openSite(), at(30*time.Second)); !got.Sooner {
		t.Errorf("a lease that is over: %+v, want an earlier deadline to stand", got)
	}
}
