// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestEpochsThatNobodyReachedI2: each bound, at the bound.
func TestEpochsThatNobodyReachedI2(t *testing.T) {
	for name, tc := range map[string]struct {
		epoch, known int64
		want         bool
	}{
		"the present one":                    {4, 4, false},
		"an older one":                       {3, 4, false},
		"a negative one":                     {-1, 4, true},
		"as many as a new group may have":    {firstEpochs, 4, false},
		"one more":                           {firstEpochs + 1, 4, true},
		"as many as a status may be behind":  {2*firstEpochs + lostEpochs, 2 * firstEpochs, false},
		"one more than that":                 {2*firstEpochs + lostEpochs + 1, 2 * firstEpochs, true},
		"near the end of all":                {wire.MaxEpoch - lostEpochs, wire.MaxEpoch - 2*lostEpochs, false},
		"nearer":                             {wire.MaxEpoch - lostEpochs + 1, wire.MaxEpoch - lostEpochs, true},
		"as near as the present one already": {wire.MaxEpoch - 1, wire.MaxEpoch - 1, false},
	} {
		if got := impossible(tc.epoch, tc.known); got != tc.want {
			t.Errorf("I2: %s: impossible %t", name, got)
		}
	}
	s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	s.Sites[1].Sidecar.Report.Epoch = -1
	if got := Believed(s); !got.Sites[1].Impossible || s.Sites[1].Impossible {
		t.Error("I2: what was looked at is changed")
	}
}

// TestForHowLongASiteWasSilentI9: by what its sidecar says, and never longer than since the last poll.
func TestForHowLongASiteWasSilentI9(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*facts.Site)
		want   time.Duration
	}{
		"for a while":                 {func(*facts.Site) {}, 1500 * time.Millisecond},
		"for long":                    {func(a *facts.Site) { a.Sidecar.Report.SilentMillis = 60_000 }, 2 * time.Second},
		"by a clock that went back":   {func(a *facts.Site) { a.Sidecar.Report.SilentMillis = -1 }, 0},
		"its sidecar does not answer": {func(a *facts.Site) { a.Sidecar.Answered = false }, 0},
		"its MySQL does":              {func(a *facts.Site) { a.Sidecar.Report.Answered = true }, 0},
	} {
		a := factstest.Seen("a", "A:1-9", 4)
		a.Sidecar.Report.Answered, a.Sidecar.Report.SilentMillis = false, 1500
		tc.change(&a)
		if got := silentFor(factstest.World(facts.Durable{}), a); got != tc.want {
			t.Errorf("I9: %s: %s", name, got)
		}
	}
}

// TestWhatIsFoldedI9: only runs of one machine, node and volume whose pods are gone; what holds of one of them holds of all.
func TestWhatIsFoldedI9(t *testing.T) {
	run := func(uid, node, machine, volume string, lease time.Duration, closed bool) facts.Run {
		return facts.Run{UID: uid, Node: node, Machine: machine, Volume: volume, Lease: lease * time.Second, Closed: closed}
	}
	site := facts.Site{Pod: facts.Pod{Runs: []facts.SeenRun{{UID: "there", Machine: "n1"}}}}
	runs := []facts.Run{
		run("there", "n1", "n1", "v", 0, false), run("a", "n1", "n1", "v", 10, true), run("b", "n1", "n1", "v", 30, true), run("c", "n1", "n1", "v", 20, true),
		run("d", "n2", "n1", "v", 0, true), run("e", "n2", "n1", "v", 0, false), run("f", "n1", "n2", "v", 0, false), run("g", "n1", "n2", "v", 0, true),
		run("h", "n1", "n1", "w", 5, false),
	}
	few := slices.Clone(runs)
	for len(runs) <= runsMost {
		runs = append(runs, run("x", "n3", "n3", "v", 0, false))
	}
	want := "there@n1/v; several@n1/v 30s closed; several@n2:n1/v; several@n1:n2/v; several@n1/w 5s; several@n3/v"
	if got := factstest.TextOf(bounded(runs, site)); got != want {
		t.Errorf("I9: folded into\n%s, want\n%s", got, want)
	}
	if got := bounded(few, site); !slices.Equal(got, few) {
		t.Errorf("few are folded: %s", factstest.TextOf(got))
	}
}

// TestWhomALockExcludesI4: each of what the proof needs, alone.
func TestWhomALockExcludesI4(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(holder, other *facts.Run)
		exists bool
		want   bool
	}{
		"the same machine and volume":          {func(_, _ *facts.Run) {}, false, true},
		"another volume":                       {func(_, o *facts.Run) { o.Volume = "w" }, true, false},
		"a pod that has not told its volume":   {func(_, o *facts.Run) { o.Volume = "" }, true, true},
		"the same, and it is gone":             {func(_, o *facts.Run) { o.Volume = "" }, false, false},
		"the holder has told none":             {func(h, o *facts.Run) { h.Volume, o.Volume = "", "" }, true, false},
		"nobody answers":                       {func(h, _ *facts.Run) { h.UID = "" }, false, false},
		"it is the holder":                     {func(_, o *facts.Run) { o.UID = "new" }, true, false},
		"another machine":                      {func(_, o *facts.Run) { o.Machine = "n2" }, false, false},
		"the machines of both have no name":    {func(h, o *facts.Run) { h.Machine, o.Machine = "", "" }, false, false},
		"the machine of the other has no name": {func(_, o *facts.Run) { o.Machine = "" }, false, false},
	} {
		holder, other := factstest.On("new", "n1"), factstest.On("old", "n1")
		tc.change(&holder, &other)
		if got := excludes(holder, other, tc.exists); got != tc.want {
			t.Errorf("I4: %s: %t", name, got)
		}
	}
}

// TestWhenAReportProvesNothingLater: what is merged into an acknowledgement.
func TestWhenAReportProvesNothingLaterI5(t *testing.T) {
	sites := []facts.Site{{Name: "a"}, {Name: "b"}}
	known := &facts.Ack{Epoch: 4, LastVouch: map[string]time.Time{"a": factstest.Start.Add(-time.Minute)}}
	report := facts.Site{Name: "b", Sidecar: facts.Sidecar{At: factstest.Start, Report: wire.Report{
		Site: "b", Epoch: 4, UptimeMillis: 60_000, Vouched: []wire.Vouch{{Site: "a", AgeMillis: 1000}},
	}}}
	if got := acknowledge(known, report, sites); !got.LastVouch["a"].Equal(factstest.Start.Add(-time.Minute)) {
		t.Errorf("I5: %v", got.LastVouch)
	}
	known.LastVouch["a"] = factstest.Start
	if got := acknowledge(known, report, sites); !got.LastVouch["a"].Equal(factstest.Start.Add(-time.Second)) {
		t.Errorf("I5: %v", got.LastVouch)
	}
	known.LastVouch["a"], known.Epoch = factstest.Start.Add(-time.Minute), 3
	got := acknowledge(known, report, sites)
	if !got.LastVouch["a"].Equal(factstest.Start.Add(-time.Second)) {
		t.Errorf("I5: a bound under another epoch counts: %v", got.LastVouch)
	}
	if _, own := got.LastVouch["b"]; own {
		t.Error("I5: a site vouches for itself")
	}
	if got = acknowledge(&facts.Ack{Epoch: 4}, report, sites); !got.LastVouch["a"].Equal(factstest.Start.Add(-time.Second)) {
		t.Errorf("I5: a vouch that nobody knew of: %v", got.LastVouch)
	}
	if got = acknowledge(nil, report, sites); got.Epoch != 4 || !got.LastVouch["a"].Equal(factstest.Start.Add(-time.Second)) {
		t.Errorf("I5: the first acknowledgement: %+v", got)
	}
}

// TestTheBoundOfAnotherPodIsNotItsOwnI4: whom the pod before answered, and when, says nothing of this one.
func TestTheBoundOfAnotherPodIsNotItsOwnI4(t *testing.T) {
	ack := acknowledge(&facts.Ack{Epoch: 4, PodUID: "old", LastVouch: map[string]time.Time{"a": factstest.Start}}, facts.Site{Name: "c", Pod: facts.Pod{UID: "new"},
		Sidecar: facts.Sidecar{Answered: true, At: factstest.Start.Add(9 * time.Second), Report: factstest.Seen("c", "A:1", 4).Sidecar.Report}}, factstest.World(facts.Durable{}, factstest.Seen("a", "A:1", 4)).Sites)
	if got := ack.LastVouch["a"]; ack.PodUID != "new" || !got.After(factstest.Start) {
		t.Errorf("I4: the bound of another pod is taken for its own: %+v", ack)
	}
}
