// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestWhoIsKeptOutI1: super_read_only does not refuse XA COMMIT, so a site that is to be opened, or that has a prepared XA
// transaction, keeps clients out; any other lets readers in.
func TestWhoIsKeptOutI1(t *testing.T) {
	now := at(time.Minute)
	told := func(active string, hold bool) State {
		s := statement(6, active)
		s.Hold = hold
		return keep(adopt(observe(newSite(), readOnly), fromOperator(s, 0), at(0)))
	}
	offline := func(s State) State {
		f := readOnly
		f.Offline = true
		return observe(s, f)
	}
	replicates := func(s State) State {
		f := readOnly
		f.Replicates = true
		return observe(s, f)
	}
	windowed := func(active string) State {
		s := statement(7, active)
		s.Hold, s.Windows = true, []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: noon.Add(time.Hour)}}
		return adopt(told(active, true), fromOperator(s, 0), at(0))
	}
	cloning := func(s State) State {
		f := readOnly
		f.Cloning = true
		return observe(s, f)
	}
	for name, c := range map[string]struct {
		state State
		want  Decision
	}{
		"the target of a failover":                   {told("a", true), Decision{Do: KeepOut, Why: AboutToOpen}},
		"the same, kept out already":                 {offline(told("a", true)), Decision{Do: Nothing}},
		"the same, about to lose its channel":        {replicates(told("a", false)), Decision{Do: KeepOut, Why: AboutToOpen}},
		"the same, while its MySQL is changed":       {Fencing(told("a", true)), Decision{Do: Nothing}},
		"the same, in a window":                      {windowed("a"), Decision{Do: Nothing}},
		"the same, while it is cloned":               {cloning(told("a", true)), Decision{Do: Nothing}},
		"the same, when keeping out has failed":      {KeptOut(Fencing(told("a", true)), false), Decision{Do: KeepOut, Why: AboutToOpen}},
		"the same, once it has succeeded":            {KeptOut(Fencing(told("a", true)), true), Decision{Do: Nothing}},
		"a replica":                                  {told("b", true), Decision{Do: Nothing}},
		"a replica that was the target":              {offline(told("b", false)), Decision{Do: Release, Why: ReadersKeptOut}},
		"a replica with a prepared transaction":      {SawPrepared(told("b", false), 1, at(0)), Decision{Do: KeepOut, Why: PreparedXA}},
		"the prepared one, kept out already":         {offline(SawPrepared(told("b", false), 1, at(0))), Decision{Do: Nothing}},
		"one that had some a moment ago":             {offline(SawPrepared(SawPrepared(told("b", false), 1, at(55*time.Second)), 0, now)), Decision{Do: Nothing}},
		"one that had some a while ago":              {offline(SawPrepared(SawPrepared(told("b", false), 1, at(49*time.Second)), 0, now)), Decision{Do: Release, Why: ReadersKeptOut}},
		"a prepared transaction in a window":         {SawPrepared(windowed("b"), 1, at(0)), Decision{Do: Nothing}},
		"the active site, isolated and named":        {told("a", false), Decision{Do: Ask, Why: ClosedButNamed}},
		"an open site, whatever is prepared there":   {SawPrepared(openSite(), 3, at(0)), Decision{Do: Nothing}},
		"one that nobody has told who is to be open": {observe(newSite(), readOnly), Decision{Do: Nothing}},
	} {
		when := now
		if c.state.Open() {
			when = at(2 * time.Second)
		}
		if got := Decide(c.state, when); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
