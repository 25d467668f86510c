// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A decision that would have two caches take the traffic, or makes one the master that status does not name, is not performed.
func TestCheck(t *testing.T) {
	on := func(site string) Pod { return Pod{Site: site, Traffic: true} }
	for _, tc := range []struct {
		name    string
		pods    []Pod
		actions []Action
		want    error
	}{
		{"nothing to do", []Pod{on("east"), on("west")}, nil, nil},
		{"something else to do while two have it", []Pod{on("east"), on("west")}, []Action{Label{"south", v1alpha1.CacheReplica}}, ErrTwoMasters},
		{"one of two loses it", []Pod{on("east"), on("west")}, []Action{TrafficOff{"east"}}, nil},
		{"the same one again", []Pod{on("west")}, []Action{TrafficOn{"west"}}, nil},
		{"another has it", []Pod{on("east"), {Site: "west"}}, []Action{TrafficOn{"west"}}, ErrNotAway},
		{"in turn", []Pod{on("east"), {Site: "west"}}, []Action{TrafficOff{"east"}, TrafficOn{"west"}}, nil},
		{"not named: traffic", nil, []Action{TrafficOn{"east"}}, ErrNotDurable},
		{"not named: promotion", nil, []Action{Promote{"east"}}, ErrNotDurable},
		{"not named: take-over", nil, []Action{TakeOver{From: "west", To: "east"}}, ErrNotDurable},
		{"not named: route", nil, []Action{Route{"east"}}, ErrNotDurable},
		{"named", nil, []Action{Route{"west"}, TakeOver{From: "east", To: "west"}, Promote{"west"}, Route{ByLabels}}, nil},
		{"two in a row", nil, []Action{TrafficOn{"west"}, TrafficOn{"east"}}, ErrNotAway},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decision{Status: Durable{ActiveSite: "east", Transition: &Transition{To: "west"}}, Actions: tc.actions}
			if err := d.Check(Snapshot{Pods: tc.pods}); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

func TestTheSoonestLookCounts(t *testing.T) {
	for _, tc := range []struct{ before, next, want time.Duration }{{0, restless, restless}, {hurry, restless, hurry}, {restless, hurry, hurry}} {
		if got := (Decision{Next: tc.before}).within(tc.next).Next; got != tc.want {
			t.Errorf("within %s after %s is %s, want %s", tc.next, tc.before, got, tc.want)
		}
	}
}

// Every fact without which a cache is no master, or no replica that has caught up.
func TestMasterAndFollows(t *testing.T) {
	master := Pod{Reachable: true, Role: v1alpha1.CacheMaster}
	replica := Pod{Reachable: true, Role: v1alpha1.CacheReplica, Linked: true, Following: "east"}
	if !master.Master() || master.Follows("east") || !replica.Follows("east") || replica.Master() {
		t.Error("a master or a replica is none")
	}
	for name, change := range map[string]func(*Pod){
		"silent":  func(p *Pod) { p.Reachable = false },
		"loading": func(p *Pod) { p.Loading = true },
		"role":    func(p *Pod) { p.Role = "" },
	} {
		m, r := master, replica
		change(&m)
		change(&r)
		if m.Master() || r.Follows("east") {
			t.Errorf("%s: it counts", name)
		}
	}
	for name, change := range map[string]func(*Pod){
		"down":    func(p *Pod) { p.Linked = false },
		"syncing": func(p *Pod) { p.Syncing = true },
		"another": func(p *Pod) { p.Following = "west" },
	} {
		r := replica
		if change(&r); r.Follows("east") {
			t.Errorf("%s: it follows", name)
		}
	}
	if master.FailingOver = true; master.Master() {
		t.Error("one that hands over is the master")
	}
}

// What is remembered says the same as what is seen. Each is asked without the other.
func TestRulesWithoutMemory(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest+"; away east 1h; last Home west east 1 1h")
	if m, due := away(w.s, &Decision{Memory: w.m}); due {
		t.Errorf("a master that answers is away: %+v", m)
	}
	w.prepare(t, "mysql west epoch=4 Planned; still 1h")
	if m, due := planned(w.s, &Decision{Memory: w.m}); due {
		t.Errorf("the cache moves while MySQL does: %+v", m)
	}
	if m, due := home(w.s, &Decision{Memory: w.m}); due {
		t.Errorf("the cache goes home while MySQL moves: %+v", m)
	}
	w.prepare(t, "mysql west epoch=4 Planned done; see west down")
	if m, due := home(w.s, &Decision{Memory: w.m}); due {
		t.Errorf("one goes home that has not caught up: %+v", m)
	}
}

// A memory begins with its first look, and keeps when that was.
func TestWhenAMemoryBegan(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest)
	began := w.s.Now
	for range 2 {
		if w.m = Decide(w.s, w.m).Memory; !w.m.Began.Equal(began) {
			t.Errorf("it began at %s", w.m.Began)
		}
		w.s.Now = w.s.Now.Add(time.Second)
	}
}

// The most data goes first: some before none, then the master, then what was received; who stays before who leaves, and home last.
func TestBest(t *testing.T) {
	for name, given := range map[string]string{
		"data before a master":            "see south keys=0; see west keys=1; see south master",
		"a master before more received":   "see south offset=900; see west master",
		"more received":                   "see west offset=501",
		"more received, though it leaves": "see west offset=501 leaving=drained",
		"who stays, though not at home":   "see south leaving=drained; mysql south epoch=3",
		"home":                            "mysql west epoch=3",
		"not one that loads":              "see south offset=900 loading",
		"not one that was removed":        "see south offset=900 removed",
		"not a silent one":                "see south offset=900 silent",
	} {
		w := newWorld()
		w.prepare(t, atRest+"; see east silent; "+given)
		if got, found := best(w.s); !found || got.Site != "west" {
			t.Errorf("%s: %s", name, got.Site)
		}
		slices.Reverse(w.s.Pods)
		if got, _ := best(w.s); got.Site != "west" {
			t.Errorf("%s, the other way round: %s", name, got.Site)
		}
	}
	w := newWorld()
	w.prepare(t, atRest+"; see east silent; see south silent; see west silent")
	if p, found := best(w.s); found {
		t.Errorf("%s is the best of nobody", p.Site)
	}
}

// The record tells when the traffic came back and how long nobody had it, if this operator saw both; else how long the move took.
func TestRecordOfAMove(t *testing.T) {
	for _, tc := range []struct {
		name, given string
		at, took    time.Duration
	}{
		{"seen", "off east 700ms; on west 400ms", 400 * time.Millisecond, 300 * time.Millisecond},
		{"taken away by an earlier move", "off east 3s; on west 400ms", 0, time.Second},
		{"given before it was taken away", "off east 400ms; on west 700ms", 0, time.Second},
		{"not seen to be taken away", "on west 400ms", 0, time.Second},
		{"not seen to be given", "off east 700ms", 0, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld()
			w.prepare(t, atRest+`; mysql west epoch=3; see west master; see east replica=west; quit east; traffic west; label west master; cut east 1ms;
				move Planned east west TakeOver - 3 w1 1s; `+tc.given)
			d := Decide(w.s, w.m)
			p := d.Status.Last
			if p == nil || !p.SessionsPreserved || !p.At.Time.Equal(w.s.Now.Add(-tc.at)) || p.TookMillis != tc.took.Milliseconds() {
				t.Errorf("%+v", p)
			}
		})
	}
}
