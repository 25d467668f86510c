// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/pace"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) // a Wednesday

var usual = Policy{Pause: time.Minute, StopAfter: 30 * time.Minute}

func window(t *testing.T, text string) pace.Window {
	t.Helper()
	w, err := pace.ParseWindow(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Each case is a guard: without it another group would have the turn.
func TestWhoIsNext(t *testing.T) {
	behind := func(name string) pace.Group { return pace.Group{Name: name, Behind: true} }
	had := func(group string) Turn { return Turn{Group: group, Began: noon.Add(-time.Minute)} }
	for _, tc := range []struct {
		name   string
		turn   Turn
		groups []pace.Group
		policy Policy
		want   string
	}{
		{"the first by name", Turn{}, []pace.Group{behind("n/c"), behind("n/a"), behind("n/b")}, usual, "n/a"},
		{"one that is up to date needs no turn", Turn{}, []pace.Group{{Name: "n/a"}, behind("n/b")}, usual, "n/b"},
		{"never a pinned one", Turn{}, []pace.Group{{Name: "n/a", Behind: true, Pinned: true}, behind("n/b")}, usual, "n/b"},
		{"none that is not healthy", Turn{}, []pace.Group{{Name: "n/a", Behind: true, Why: "a site is down"}, behind("n/b")}, usual, "n/b"},
		{"none whose window cannot be read", Turn{}, []pace.Group{{Name: "n/a", Behind: true, Closed: true}}, usual, ""},
		{"none while paused", Turn{Paused: true}, []pace.Group{behind("n/a")}, usual, ""},
		{"none once stopped", Turn{Stopped: "why"}, []pace.Group{behind("n/a")}, usual, ""},
		{"none outside the window", Turn{}, []pace.Group{behind("n/a")}, Policy{Window: window(t, "22:00-04:00")}, ""},
		{"a window of its own", Turn{}, []pace.Group{{Name: "n/a", Behind: true, Window: window(t, "Wed 11:00-13:00")}}, Policy{Window: window(t, "22:00-04:00")}, "n/a"},
		{"one at a time", had("n/b"), []pace.Group{behind("n/a"), behind("n/b")}, usual, "n/b"},
		{"one that has the turn goes on while paused", Turn{Group: "n/b", Began: noon, Paused: true}, []pace.Group{behind("n/b")}, usual, "n/b"},
		{"and outside the window", had("n/b"), []pace.Group{behind("n/b")}, Policy{StopAfter: time.Hour, Window: window(t, "22:00-04:00")}, "n/b"},
		{"one with its new pods keeps the turn for the pause", had("n/b"), []pace.Group{behind("n/a"), {Name: "n/b"}}, usual, "n/b"},
		{"the turn ends before another begins", Turn{Group: "n/b", Began: noon, Since: noon.Add(-time.Hour)}, []pace.Group{behind("n/a"), {Name: "n/b"}}, usual, ""},
		{"not as long as it is unhealthy", Turn{Group: "n/b", Began: noon, Since: noon.Add(-time.Hour)}, []pace.Group{behind("n/a"), {Name: "n/b", Why: "down"}}, usual, "n/b"},
		{"a group that is gone has no turn", had("n/b"), []pace.Group{behind("n/a")}, usual, ""},
		{"one that is pinned now keeps it while a pod of it is replaced", had("n/b"), []pace.Group{behind("n/a"), {Name: "n/b", Behind: true, Pinned: true, Why: "down"}}, usual, "n/b"},
		{"and for the pause", had("n/b"), []pace.Group{behind("n/a"), {Name: "n/b", Behind: true, Pinned: true}}, usual, "n/b"},
		{"and no longer", Turn{Group: "n/b", Began: noon, Since: noon.Add(-time.Minute)}, []pace.Group{behind("n/a"), {Name: "n/b", Behind: true, Pinned: true}}, usual, ""},
		{"none that a person keeps at its pods", Turn{}, []pace.Group{{Name: "n/a", Behind: true, Kept: "it is paused"}, behind("n/b")}, usual, "n/b"},
		{"one that is kept now gives the turn back instead of stopping all", Turn{Group: "n/b", Began: noon.Add(-time.Hour), Since: noon.Add(-time.Minute)},
			[]pace.Group{behind("n/a"), {Name: "n/b", Behind: true, Kept: "it is paused"}}, usual, ""},
		{"but not while it is not healthy", Turn{Group: "n/b", Began: noon, Since: noon.Add(-time.Minute)},
			[]pace.Group{behind("n/a"), {Name: "n/b", Behind: true, Kept: "it is paused", Why: "down"}}, usual, "n/b"},
		{"one that stopped all is let go by its pin", Turn{Group: "n/b", Stopped: "why"}, []pace.Group{behind("n/a"), {Name: "n/b", Behind: true, Pinned: true, Why: "down"}}, usual, ""},
	} {
		if got := Next(tc.turn, tc.groups, tc.policy, noon); got.Group != tc.want {
			t.Errorf("%s: %q has the turn, want %q", tc.name, got.Group, tc.want)
		}
	}
}

// A group that is paused, or observed, in the middle of its turn costs no other group anything.
func TestAKeptGroupStopsNobody(t *testing.T) {
	turn := Turn{Group: "n/b", Began: noon.Add(-time.Hour)}
	if turn = Next(turn, []pace.Group{{Name: "n/b", Behind: true, Kept: "it is paused"}}, usual, noon); turn.Stopped != "" || !turn.Since.Equal(noon) {
		t.Errorf("%+v", turn)
	}
}

// The caller's groups keep their order: they are told in it.
func TestGroupsKeepTheirOrder(t *testing.T) {
	groups := []pace.Group{{Name: "n/b", Behind: true}, {Name: "n/a", Behind: true}}
	if got := Next(Turn{}, groups, usual, noon); got.Group != "n/a" || groups[0].Name != "n/b" {
		t.Errorf("%s has the turn, and the groups begin with %s", got.Group, groups[0].Name)
	}
}

// While all is stopped no time runs: whoever lets the group go on gives it all of its time.
func TestNoTimeRunsWhileAllIsStopped(t *testing.T) {
	turn := Next(Turn{Group: "n/a", Began: noon.Add(-time.Hour), Since: noon, Stopped: "why"}, []pace.Group{{Name: "n/a", Behind: true}}, usual, noon)
	if turn != (Turn{Group: "n/a", Stopped: "why"}) {
		t.Errorf("%+v", turn)
	}
}

// A turn leaves nothing behind, and begins with nothing of the one before.
func TestATurnFromBeginToEnd(t *testing.T) {
	groups := []pace.Group{{Name: "n/a", Behind: true}}
	turn := Next(Turn{Since: noon.Add(-time.Hour)}, groups, usual, noon)
	if turn != (Turn{Group: "n/a", Began: noon}) {
		t.Fatalf("%+v", turn)
	}
	healthy := []pace.Group{{Name: "n/a"}}
	if turn = Next(turn, healthy, usual, noon.Add(time.Second)); turn != (Turn{Group: "n/a", Began: noon, Since: noon.Add(time.Second)}) {
		t.Fatalf("%+v", turn)
	}
	for name, groups := range map[string][]pace.Group{"done": healthy, "gone": nil} {
		if end := Next(turn, groups, usual, noon.Add(2*time.Minute)); end != (Turn{}) {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

// The leader of before may have had a clock that was ahead: its times count from now, so the turn ends after the pause, or stops all in time.
func TestTimesThatAreStillToComeCountFromNow(t *testing.T) {
	ahead := noon.Add(48 * time.Hour)
	turn := Next(Turn{Group: "n/a", Began: ahead, Since: ahead}, []pace.Group{{Name: "n/a"}}, usual, noon)
	if turn != (Turn{Group: "n/a", Began: noon, Since: noon}) {
		t.Errorf("%+v", turn)
	}
	if turn = Next(turn, []pace.Group{{Name: "n/a"}}, usual, noon.Add(usual.Pause)); turn != (Turn{}) {
		t.Errorf("the turn does not end: %+v", turn)
	}
	behind := []pace.Group{{Name: "n/a", Behind: true}}
	turn = Next(Turn{Group: "n/a", Began: ahead}, behind, usual, noon)
	if turn = Next(turn, behind, usual, noon.Add(usual.StopAfter)); turn.Stopped == "" {
		t.Errorf("a group that is late stops nobody: %+v", turn)
	}
}

// A healthy group whose pods are not replaced in time stops all, too, and says that. A person who lets it go on in the same moment gives it all of
// its time again, and what was well before the stop counts for nothing.
func TestPodsThatAreNotReplaced(t *testing.T) {
	behind, well, sick := []pace.Group{{Name: "n/a", Behind: true}}, []pace.Group{{Name: "n/a"}}, []pace.Group{{Name: "n/a", Why: "down"}}
	turn := Next(Turn{Group: "n/a", Began: noon}, behind, usual, noon.Add(30*time.Minute))
	if !strings.Contains(turn.Stopped, "still to be replaced") {
		t.Fatalf("%+v", turn)
	}
	resumed := turn
	resumed.Stopped = ""
	if resumed = Next(resumed, behind, usual, noon.Add(31*time.Minute)); resumed.Stopped != "" || !resumed.Began.Equal(noon.Add(31*time.Minute)) {
		t.Errorf("%+v", resumed)
	}
	turn = Next(turn, well, usual, noon.Add(31*time.Minute))
	if turn = Next(turn, sick, usual, noon.Add(31*time.Minute+time.Second)); !turn.Since.IsZero() || !turn.Began.IsZero() || turn.Group == "" {
		t.Errorf("%+v", turn)
	}
}

// A short failover after a group's turn stops nobody; what lasts stops the campaign, and stays stopped when the group recovers.
func TestAnUnhealthyGroupStops(t *testing.T) {
	sick := []pace.Group{{Name: "n/a", Why: "a site is down"}, {Name: "n/b", Behind: true}}
	turn := Turn{Group: "n/a", Began: noon.Add(-10 * time.Minute), Since: noon}
	turn = Next(turn, sick, usual, noon.Add(time.Second))
	if turn.Stopped != "" || !turn.Since.IsZero() {
		t.Fatalf("a blip stops all: %+v", turn)
	}
	turn = Next(turn, sick, usual, noon.Add(31*time.Minute))
	if !strings.Contains(turn.Stopped, "a site is down") {
		t.Fatalf("not stopped: %+v", turn)
	}
	well := []pace.Group{{Name: "n/a"}, {Name: "n/b", Behind: true}}
	for at := 32; at < 60; at++ {
		turn = Next(turn, well, usual, noon.Add(time.Duration(at)*time.Minute))
	}
	if turn.Group != "" || turn.Stopped == "" {
		t.Errorf("another group begins without a person: %+v", turn)
	}
}

// A group whose new pods crash again and again is never healthy for the whole pause, and never unhealthy for long. It stops all the same.
func TestAGroupThatComesAndGoesStops(t *testing.T) {
	sick, well := []pace.Group{{Name: "n/a", Why: "a site is down"}}, []pace.Group{{Name: "n/a"}}
	turn, down := Turn{Group: "n/a", Began: noon}, time.Duration(0)
	for at := noon; turn.Stopped == ""; at = at.Add(30 * time.Second) {
		groups := sick
		if at.Sub(noon)%(5*time.Minute) == 0 {
			groups = well
		} else {
			down += 30 * time.Second
		}
		if turn = Next(turn, groups, usual, at); down > usual.StopAfter+time.Minute || turn.Group == "" {
			t.Fatalf("it was down for %s: %+v", down, turn)
		}
	}
}

// A pin is no way past a pod that does not come up: what is unhealthy for too long stops all, and is then let go.
func TestAPinnedGroupThatIsNotBack(t *testing.T) {
	sick := []pace.Group{{Name: "n/a", Behind: true, Pinned: true, Why: "a site is down"}, {Name: "n/b", Behind: true}}
	turn := Next(Turn{Group: "n/a", Began: noon}, sick, usual, noon.Add(31*time.Minute))
	if turn.Group != "n/a" || !strings.Contains(turn.Stopped, "a site is down") {
		t.Fatalf("%+v", turn)
	}
	for range 2 {
		turn = Next(turn, sick, usual, noon.Add(32*time.Minute))
	}
	if turn.Group != "" || turn.Stopped == "" {
		t.Fatalf("%+v", turn)
	}
	turn.Stopped = ""
	if turn = Next(turn, sick, usual, noon.Add(33*time.Minute)); turn.Group != "n/b" {
		t.Errorf("%+v", turn)
	}
}

// A person who lets it go on gives the group as much time again, however long it stood still.
func TestATimeOfItsOwnAfterAStop(t *testing.T) {
	sick := []pace.Group{{Name: "n/a", Behind: true, Why: "a site is down"}}
	turn := Next(Turn{Group: "n/a", Began: noon}, sick, usual, noon.Add(31*time.Minute))
	turn = Next(turn, sick, usual, noon.Add(10*time.Hour))
	if turn.Stopped == "" {
		t.Fatalf("not stopped: %+v", turn)
	}
	turn.Stopped = ""
	for _, step := range []struct {
		minutes int
		stopped bool
	}{{601, false}, {615, false}, {630, false}, {632, true}, {640, true}} {
		turn = Next(turn, sick, usual, noon.Add(time.Duration(step.minutes)*time.Minute))
		if (turn.Stopped != "") != step.stopped || turn.Group != "n/a" {
			t.Errorf("after %d minutes: %+v", step.minutes, turn)
		}
	}
}

// Ten groups, each step possibly the last of a process: never two at a time, each exactly once, in their order.
func TestACampaign(t *testing.T) {
	var groups []pace.Group
	for i := range 10 {
		groups = append(groups, pace.Group{Name: fmt.Sprintf("n/%d", 9-i), Behind: true})
	}
	turn, order, left := Turn{}, []string{}, 0
	for at := noon; at.Before(noon.Add(time.Hour)); at = at.Add(10 * time.Second) {
		before := turn.Group
		turn = Next(turn, groups, usual, at)
		if turn.Group != before {
			if before != "" && turn.Group != "" {
				t.Fatalf("%s has the turn of %s at once", turn.Group, before)
			}
			if turn.Group != "" {
				order, left = append(order, turn.Group), 6
			}
		}
		if left--; left == 0 {
			for i := range groups {
				groups[i].Behind = groups[i].Behind && groups[i].Name != turn.Group
			}
		}
	}
	if got := strings.Join(order, " "); got != "n/0 n/1 n/2 n/3 n/4 n/5 n/6 n/7 n/8 n/9" || turn.Group != "" {
		t.Errorf("order %s, then %+v", got, turn)
	}
}

func TestSort(t *testing.T) {
	for _, tc := range []struct {
		name          string
		known         Known
		look          Look
		behind, asked bool
	}{
		{"up to date", Known{"r1", "t1", true}, Look{"r2", "t1", "t1", true, false}, false, false},
		{"a new version", Known{"r1", "t1", false}, Look{"r2", "t1", "t2", false, false}, true, false},
		{"the first version that paces", Known{}, Look{"r2", "t1", "t2", false, false}, true, false},
		{"with it a change of the specification", Known{"r1", "t1", false}, Look{"r2", "t1", "t2", true, false}, false, true},
		{"a change that the version before was at", Known{"r1", "t1", true}, Look{"r2", "t1", "t2", false, false}, false, true},
		{"still the same version", Known{"r2", "t2", false}, Look{"r2", "t1", "t2", false, false}, true, false},
		{"a change of the specification that is none of the pod", Known{"r2", "t2", false}, Look{"r2", "t1", "t2", true, false}, true, false},
		{"a change while it is behind", Known{"r2", "t2", false}, Look{"r2", "t1", "t3", true, false}, false, true},
		{"a change of the group's own", Known{"r2", "t2", false}, Look{"r2", "t1", "t3", false, false}, false, true},
		{"what was asked for at the first look, in the next", Known{"r2", "t2", true}, Look{"r2", "t1", "t2", false, false}, false, true},
		{"an order that came while no operator ran", Known{"r1", "t1", false}, Look{"r2", "t1", "t2", false, true}, false, true},
		{"an order that a former look took for the version", Known{"r2", "t2", false}, Look{"r2", "t1", "t2", false, true}, false, true},
		{"an order that is done", Known{"r1", "t1", false}, Look{"r2", "t2", "t2", false, true}, false, false},
		{"which stays one", Known{"r2", "t2", true}, Look{"r2", "t1", "t3", false, false}, false, true},
	} {
		keep, behind := Sort(tc.known, tc.look)
		if behind != tc.behind || keep.Asked != tc.asked || keep.Revision != tc.look.Revision {
			t.Errorf("%s: behind %v, keep %+v", tc.name, behind, keep)
		}
	}
	// What was asked for stays so in later looks, until the pod is replaced.
	keep, _ := Sort(Known{"r2", "t2", false}, Look{"r2", "t1", "t3", true, false})
	if again, behind := Sort(keep, Look{"r2", "t1", "t3", false, false}); behind || !again.Asked || keep.Template != "t2" {
		t.Errorf("forgotten: %+v", again)
	}
}
