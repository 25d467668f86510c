// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"bytes"
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
)

// inWindow is site a under epoch 5 of b, writable behind offline_mode in a window for a clone.
func inWindow() (State, wire.Statement) {
	st := statement(5, "b")
	st.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: noon.Add(time.Minute)}}
	s := keep(adopt(observe(newSite(), readOnly), fromOperator(st, time.Second), at(time.Second)))
	f := writable
	f.Offline = true
	return observe(s, f), st
}

// TestWithinAnEpochAPushChangesNothingI3: no matter who sends it or when it was signed, and also if what is known is from a push, a
// peer or the volume. It has the operator asked, whose answer counts.
func TestWithinAnEpochAPushChangesNothingI3(t *testing.T) {
	now := at(2 * time.Second)
	cloned, window := inWindow()
	held := statement(5, "a")
	held.Hold, held.IssuedAt = true, noon.Add(time.Hour)
	windowless, sooner := window, window
	windowless.Windows = nil
	sooner.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: noon.Add(3 * time.Second)}}
	shorter := statement(5, "a")
	shorter.LeaseTimeoutMillis = 1000
	byPush := adopt(observe(newSite(), readOnly), pushed(held), now)
	byPeer := adopt(observe(newSite(), readOnly), fromPeer(held, time.Second), now)
	byVolume := observe(Boot(cloned.site, cloned.limits, keep(cloned).kept, now), readOnly)
	for name, c := range map[string]struct {
		known State
		told  wire.Statement
		ask   bool
	}{
		"a hold":                      {closedSite(), held, true},
		"a hold on an open site":      {openSite(), held, true},
		"no hold any more":            {adopt(closedSite(), fromOperator(held, time.Second), now), statement(5, "a"), true},
		"no window":                   {cloned, windowless, true},
		"a window":                    {adopt(cloned, fromOperator(windowless, time.Second), now), window, true},
		"a window that ends sooner":   {cloned, sooner, false},
		"a shorter lease":             {openSite(), shorter, true},
		"no hold after a pushed one":  {byPush, statement(5, "a"), true},
		"no hold after a relayed one": {byPeer, statement(5, "a"), true},
		"no window after a restart":   {byVolume, windowless, true},
	} {
		before := Decide(c.known, now)
		s, a := Adopt(c.known, pushed(c.told), now)
		if a.Taken || a.Refusal.Reason != RelayedNotNewer || a.Ask != c.ask {
			t.Errorf("I3: %s: %+v", name, a)
		}
		if diff := cmp.Diff(c.known.Newest(), s.Newest()); diff != "" || Decide(s, now) != before || Watch(s, now) != Watch(c.known, now) {
			t.Errorf("I3: %s: decided %+v, then %+v; known (-before +after):\n%s", name, before, Decide(s, now), diff)
		}
		if s, a = Adopt(s, fromOperator(c.told, now.Mono), now); !a.Taken || a.Ask || s.Newest().Hold != c.told.Hold || len(s.Newest().Windows) != len(c.told.Windows) {
			t.Errorf("%s: the operator's own answer: %+v", name, a)
		}
	}
	if _, a := Adopt(cloned, fromPeer(windowless, time.Second), now); a.Taken || a.Ask {
		t.Errorf("a peer is asked often, and what it knows is no news: %+v", a)
	}
	if _, a := Adopt(cloned, pushed(statement(6, "b")), now); !a.Taken || a.Ask {
		t.Errorf("a greater epoch is taken from anybody: %+v", a)
	}
}

// TestAPushThatSaysTheSameIsTaken: a later key has signed it, and what the volume holds must say so before the report does.
func TestAPushThatSaysTheSameIsTaken(t *testing.T) {
	now := at(2 * time.Second)
	_, key, _ := ed25519.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{1}, 64)))
	next, _, _ := ed25519.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{2}, 64)))
	s, told := inWindow()
	told.Keys = wire.Chain(nil).Next(key, next)
	told.Windows = append([]wire.Window{{Site: "c", Purpose: wire.WindowClone, Deadline: noon.Add(time.Hour)}}, told.Windows...)
	s, a := Adopt(s, pushed(told), now)
	if _, due := Unkept(s); !a.Taken || a.Ask || !due || !s.Newest().Keys.Equal(told.Keys) {
		t.Errorf("%+v, to be written %v", a, due)
	}
	held := told
	held.Hold, held.Keys = true, nil
	if _, a = Adopt(s, pushed(held), now); a.Taken || !a.Ask {
		t.Errorf("I3: a hold by another key: %+v", a)
	}
	other := statement(5, "a")
	other.Keys = told.Keys
	if _, a = Adopt(closedSite(), pushed(other), now); !a.Taken {
		t.Errorf("the same by another key: %+v", a)
	}
}
