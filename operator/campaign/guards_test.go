// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Each row is stopped by one guard alone.
func TestGuards(t *testing.T) {
	stands := func(step v1alpha1.CampaignStep, site string) func(*Group) {
		return func(g *Group) { g.Status.Step, g.Status.Site, g.Status.StepID = step, site, "old" }
	}
	ready := func(b, c bool) func(*Group) { // both are candidates
		return func(g *Group) { g.Sites[2].Candidate, g.Sites[1].Ready, g.Sites[2].Ready = true, b, c }
	}
	replicas := func(g *Group) {
		g.Value = "*:replicas"
		g.Status = nil
		g.Status = Decide(*g).Status
	}
	for name, tc := range map[string]struct {
		change []func(*Group)
		want   string
	}{
		// Where the role goes: the order of the specification, unless one is not healthy.
		"the first of two that are healthy": {[]func(*Group){done("b", "c"), ready(true, true)}, "Moving:b ask b as step"},
		"the first, which alone is healthy": {[]func(*Group){done("b", "c"), ready(true, false)}, "Moving:b ask b as step"},
		"the first, if none is healthy":     {[]func(*Group){done("b", "c"), ready(false, false)}, "Waiting:b TargetNotReady"},
		"the healthy one":                   {[]func(*Group){done("b", "c"), ready(false, true)}, "Moving:c ask c as step"},

		// What is at hand.
		"another site rotates than status says":         {[]func(*Group){underWay("c"), stands(v1alpha1.CampaignRotating, "b")}, "Rotating:c rotate c as step"},
		"it waited for a site that rotates now":         {[]func(*Group){underWay("b"), stands(v1alpha1.CampaignWaiting, "b")}, "Rotating:b rotate b as step"},
		"a move was refused, and its target is active":  {[]func(*Group){moves(answers(v1alpha1.RequestRefused, "TargetLags"), func(g *Group) { g.Active = "b" })}, "Waiting:b TargetLags"},
		"a move was given up, and its target is active": {[]func(*Group){moves(answers(v1alpha1.RequestFailed, "Aborted"), func(g *Group) { g.Active = "b" })}, "Failed Aborted answer Failed (Aborted), say Stopped"},

		// The replicas alone: whatever is active is left out, and the role is not moved.
		"a replica became active (I20)":        {[]func(*Group){replicas, done("c"), func(g *Group) { g.Active = "b" }}, "Done Completed answer Done (Completed), say Done"},
		"a replica became active, one is left": {[]func(*Group){replicas, func(g *Group) { g.Active = "b" }}, "Rotating:c rotate c as step"},
	} {
		if got := words(Decide(begun(tc.change...))); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tc.want)
		}
	}
}

// Without a campaign nothing is taken back: a planned failover that stands is somebody else's.
func TestNothingIsTakenBackWithoutACampaign(t *testing.T) {
	if got := words(Decide(Group{Move: Move{Stands: true}})); got != "nothing " {
		t.Errorf("never asked: %q", got)
	}
	g := sealed()
	g.Move.Stands = true
	if got := words(Refuse(g, "NotEncrypted", "no")); got != "nothing answer Refused (NotEncrypted), say Refused" {
		t.Errorf("refused: %q", got)
	}
}

// An order that names no site asks for none, also where none is active.
func TestAnOrderWhileNoSiteIsActive(t *testing.T) {
	g := sealed()
	g.Active = ""
	if got := words(Decide(g)); got != ": say Began" {
		t.Error(got)
	}
}

// Nothing of a step is left once it is over: neither in a campaign that has ended, nor after a move, which would be counted with each look.
func TestWhatAStepLeaves(t *testing.T) {
	later := noon.Add(time.Minute)
	for name, change := range map[string]func(*Group){
		"done":      done("a", "b", "c"),
		"withdrawn": func(g *Group) { g.Asked = false },
		"failed":    func(g *Group) { g.Status.Sites[1].Tries = maxTries },
	} {
		g := begun(change, func(g *Group) {
			g.Status.Step, g.Status.Site, g.Status.Since, g.Now = v1alpha1.CampaignWaiting, "b", at(noon), later
		})
		if c := Decide(g).Status; c.Outcome == "" || c.Step != "" || c.Site != "" || !c.Since.Time.Equal(later) || !c.EndedAt.Time.Equal(later) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	g := begun(moves(func(g *Group) { g.Active, g.Known, g.Status.Asked, g.Status.Reason = "b", false, true, "TargetLags" }))
	for range 3 { // nothing begins while nothing is known
		g.Status = Decide(g).Status
		if c := g.Status; c.Moves != 1 || c.Step != "" || c.Asked || c.Reason != "" || !c.UnderWay() {
			t.Errorf("after the move: %+v", c)
		}
	}
	g = begun(moves(answers(v1alpha1.RequestRefused, "TargetLags"), func(g *Group) { g.Status.Asked = true }))
	if c := Decide(g).Status; c.Step != v1alpha1.CampaignWaiting || c.Asked {
		t.Errorf("a move that was refused is asked for no more: %+v", c)
	}
}

// What people are told names what they asked for, what came of it, and what they can do.
func TestWhatPeopleAreTold(t *testing.T) {
	said := func(d Decision) string {
		var out []string
		for _, e := range d.Effects {
			switch e := e.(type) {
			case Answer:
				out = append(out, e.Message)
			case Say:
				out = append(out, e.Text)
			case AskMove, TakeBack:
			}
		}
		return strings.Join(out, "\n")
	}
	asks := func(value string, change ...func(*Group)) Group {
		g := sealed()
		g.Value = value
		for _, f := range change {
			f(&g)
		}
		return g
	}
	dr := func(g *Group) { g.Sites[1].Candidate = false }
	becameActive := asks("*:replicas")
	becameActive.Status = Decide(becameActive).Status
	done("c")(&becameActive)
	becameActive.Active = "b"
	for name, tc := range map[string]struct {
		g      Group
		want   string
		absent string
	}{
		"it begins":                      {asks("*"), "The rotation of all sites begins: a, b, c", ""},
		"the replicas alone":             {asks("*:replicas"), "The rotation of all replicas begins: b, c", ""},
		"to a site that is no candidate": {asks("*:to=rome"), `"rome"`, "*:replicas"},
		"no candidate":                   {asks("*", dr), "ask for the replicas alone (*:replicas)", `""`},
		"it is done":                     {begun(done("a", "b", "c")), "sealed: a v3 -> v4, b v3 -> v4, c v3 -> v4", ""},
		"one was left out":               {becameActive, "sealed: c v3 -> v4", "b v3"},
	} {
		d := Decide(tc.g)
		for i, text := range strings.Split(said(d), "\n") {
			if !strings.Contains(text, tc.want) || tc.absent != "" && strings.Contains(text, tc.absent) {
				t.Errorf("%s: words %d are %q", name, i, text)
			}
		}
		if c := d.Status; c != nil && c.Outcome == v1alpha1.CampaignDone && !strings.Contains(c.Message, tc.want) {
			t.Errorf("%s: status says %q", name, c.Message)
		}
	}
}
