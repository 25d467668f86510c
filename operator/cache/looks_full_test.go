// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A master with as many clients as it may have refuses the operator, and lives: it stays the master, and people are told.
func TestLooksAtAFullMaster(t *testing.T) {
	const stays = "not CacheFull; event CacheFull; next 500ms"
	const promoted = "as before CacheMoving; CacheOnly east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; next 1ms"
	const gone = "as before CacheMoving; CacheOnly east>south Promotion CacheMasterSilent; route to south; promote south; traffic on south; next 1ms"
	const hour = "see east full; away east 1h; last Home south east 3 2h; "
	runLooks(t, []look{
		{name: "for a moment", given: "see east full; away east 4900ms", want: "as before CacheFull; next 500ms"},
		{name: "for long", given: hour + "born east 3h", want: stays, says: "It stays the master: end connections of applications"},
		{name: "it says why it cannot be asked", given: hour + "trouble east 10.0.0.1: no place", want: stays, says: "the operator too: 10.0.0.1: no place"},
		{name: "as a new operator sees it, which does not know since when", given: "see east full", want: "as before CacheFull; next 500ms"},
		{name: "no change of the master is recorded", given: "see east full; away east 1h", want: stays},
		{name: "told before", given: hour + "filled east 2s", want: "not CacheFull; next 500ms"},
		{name: "the group is paused", given: hour + "hold paused", want: stays, says: "; the operator moves it nowhere: paused"},
		{name: "its process began after it became the master", given: hour + "born east 1m", want: promoted},
		{name: "its process began at that moment", given: hour + "born east 2h", want: promoted},
		{name: "its pod is gone", given: hour + "see east gone", want: gone},
		{name: "it is silent", given: hour + "see east silent", want: promoted},
		{name: "a person asks for another", given: hour + "ask west", want: "not CacheFull; event CacheFull; answer done=false failed=false CacheFull; next 500ms"},
		{name: "its node is drained", given: hour + "see east leaving=drained", want: stays},
		{name: "MySQL has moved by plan", given: hour + "mysql west epoch=4 Planned done; still 1h", want: stays},
		{name: "MySQL moves in an emergency: its site is given up all the same", given: hour + "mysql west epoch=4 Emergency",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent; route to west; traffic off east; promote west; traffic on west; next 1ms"},
		{name: "another one is full", given: "see west full; away west 1h; trouble west no place", want: "ready AsExpected; next 500ms", says: "; west: no place"},

		{name: "it answers, and would refuse another", given: "see east crowded", want: "not CacheFull; event CacheFull", says: "refuses more: end connections"},
		{name: "it answers, told before", given: "see east crowded; filled east 2s", want: "not CacheFull"},
		{name: "it has had a place for a moment", given: "filled east 29s", want: "not CacheFull"},
		{name: "it has had a place for long", given: "filled east 30s", want: "ready AsExpected"},
		{name: "it answers, and no replica gets in", given: "see east crowded; see west down; see south down", want: "not CacheFull; event CacheFull; next 500ms"},
		{name: "it answers, and moves", given: "see east crowded; ask west",
			want: "as before CacheMoving; Requested east>west TakeOver; route to west; await connections at west; take over east -> west within 2s; cut clients of east; traffic off east; traffic on west; label east replica; next 1ms"},
	})
}

// A planned failover of MySQL counts on a master that is full, and not on one that is gone.
func TestSessionsOfAFullMasterAreWaitedFor(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest+"; see east full; away east 1h")
	for _, y := range Decide(w.s, w.m).Synced {
		if y.Yes != (y.Site == "east") {
			t.Errorf("%+v", y)
		}
	}
}

// What is remembered of a full cache: when it was full last, whether people know, and no silence.
func TestWhatIsRememberedOfAFullMaster(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest+"; see east full; away east 3s")
	missed := w.m.of("east").MissedSince
	for range 3 {
		w.s.Now = w.s.Now.Add(2 * time.Second)
		w.m = Decide(w.s, w.m).Memory
	}
	is := w.m.of("east")
	if !is.FullAt.Equal(w.s.Now) || !is.FullTold || w.s.Now.Sub(is.MissedSince) > 5*time.Second || is.MissedSince.Before(missed) {
		t.Errorf("at %s: %+v", w.s.Now, is)
	}
	w.see(t, w.pod("east"), "master")
	w.s.Now = w.s.Now.Add(fullQuiet)
	if is = Decide(w.s, w.m).Memory.of("east"); !is.FullAt.IsZero() || is.FullTold {
		t.Errorf("later: %+v", is)
	}
}

// One that was silent for too long, and answers now that it is full, is there: what was missed before does not count against it.
func TestAFullMasterWasSilentBefore(t *testing.T) {
	for word, want := range map[string]string{"full": "", "silent": "south"} {
		w := newWorld()
		w.prepare(t, atRest+"; away east 1h; see east "+word)
		w.m.LookedAt = w.s.Now.Add(-time.Second)
		to := ""
		if t := Decide(w.s, w.m).Status.Transition; t != nil {
			to = t.To
		}
		if to != want {
			t.Errorf("%s: it moves to %q, want %q", word, to, want)
		}
	}
}

// What is known of a cache that refuses: it has a pod, is the process of before, and cannot be asked.
func TestWhoRefuses(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := Snapshot{Pods: []Pod{{Site: "east", Exists: true, Full: true, Began: at.Add(-time.Second)}}}
	s.Status.Last = &Promotion{Reason: v1alpha1.ReasonCacheMasterSilent}
	s.Status.Last.At.Time = at
	if !s.Refuses("east") || s.Refuses("west") {
		t.Error("one that refuses does not")
	}
	for name, change := range map[string]func(*Pod){
		"no pod":      func(p *Pod) { p.Exists = false },
		"it has room": func(p *Pod) { p.Full = false },
		"it answers":  func(p *Pod) { p.Reachable = true },
		"it is newer": func(p *Pod) { p.Began = at },
	} {
		p := s.Pods[0]
		if change(&p); s.refuses(p) {
			t.Errorf("%s: it refuses", name)
		}
	}
}
