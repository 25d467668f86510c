// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// How far a replica may be behind and count as caught up: in bytes, and with an engine whose masters name no offset in changes.
func TestHowFarBehindIsCaughtUp(t *testing.T) {
	for name, tc := range map[string]struct {
		master, replica, lag int64
		behind               int64
		synced               bool
		says                 string
	}{
		"nothing":           {master: 100, replica: 100, synced: true},
		"ahead of a look":   {master: 100, replica: 120, synced: true},
		"just enough bytes": {master: 1 << 21, replica: 1 << 20, behind: 1 << 20, synced: true},
		"too many bytes":    {master: 1<<21 + 1, replica: 1 << 20, behind: 1<<20 + 1, says: "1048577 bytes behind"},
		"bytes go before":   {master: 100, replica: 100, lag: 5000, synced: true},
		"few changes":       {replica: 5_000_000, lag: 1000, behind: 1000, synced: true},
		"too many changes":  {replica: 5_000_000, lag: 1001, behind: 1001, says: "1001 changes behind"},
	} {
		t.Run(name, func(t *testing.T) {
			east := Pod{Site: "east", Exists: true, Reachable: true, Role: v1alpha1.CacheMaster, Offset: tc.master}
			west := Pod{Site: "west", Exists: true, Reachable: true, Role: v1alpha1.CacheReplica, Following: "east", Linked: true, Offset: tc.replica, Lag: tc.lag}
			if got := Behind(east, west); got != tc.behind {
				t.Errorf("it is %d behind, want %d", got, tc.behind)
			}
			d := Decide(Snapshot{Now: time.Unix(1e9, 0), MySQL: MySQL{Active: "east", Epoch: 1}, Status: Durable{ActiveSite: "east"}, Pods: []Pod{east, west}}, Memory{})
			if got := d.Synced[1]; got.Yes != tc.synced || !strings.Contains(got.Why, tc.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// CacheReady names a replica that follows and stays far behind: it has not caught up, and a planned failover would have to wait for it.
func TestWhoIsFarBehindIsNamed(t *testing.T) {
	const all, one = "2 of 2 replicas have caught up", "1 of 2 replicas have caught up; west follows and is far behind"
	w := newWorld()
	w.prepare(t, atRest+"; see east offset=9000000; see south offset=9000000")
	for _, tc := range []struct {
		given string
		after time.Duration
		says  string
	}{
		{"see west offset=1", 0, all},
		{"", 4900 * time.Millisecond, all},
		{"", 100 * time.Millisecond, one},
		{"see west offset=9000000", time.Second, all},
		{"see west offset=1", time.Second, all},
		{"", 5 * time.Second, one},
		{"see west down", time.Second, "1 of 2 replicas have caught up"},
	} {
		w.prepare(t, tc.given)
		w.s.Now = w.s.Now.Add(tc.after)
		d := Decide(w.s, w.m)
		if w.m = d.Memory; !d.Ready || !strings.HasSuffix(d.Message, tc.says) {
			t.Errorf("%q after %s: %q, want %q", tc.given, tc.after, d.Message, tc.says)
		}
	}
}

// A planned failover waits while the master misses an answer, and no longer for one that is lost: there are no sessions to keep.
func TestAMasterThatDoesNotAnswerIsNotCaughtUpWith(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		yes   bool
	}{
		"it misses an answer":       {"see east silent", false},
		"it is silent for a moment": {"see east silent; away east 4900ms", false},
		"it is lost":                {"see east silent; away east 5s", true},
		"there was none yet":        {"status active= run=; nohome; see east silent", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.prepare(t, atRest)
			w.prepare(t, "hold paused")
			w.prepare(t, tc.given)
			for _, y := range Decide(w.s, w.m).Synced {
				if y.Site == "west" && y.Yes != tc.yes {
					t.Errorf("got %+v", y)
				}
			}
		})
	}
}
