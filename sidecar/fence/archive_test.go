// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// I26: a site archives only what commits under its own opening of the newest epoch.
func TestArchives(t *testing.T) {
	open := State{site: Site{Name: "a"}, word: wire.Statement{Epoch: 5, ActiveSite: "a"}, openEpoch: 5, exposed: true, seen: Facts{Answered: true, Writable: true}}
	if !open.Archives() {
		t.Error("the open site does not archive")
	}
	for name, change := range map[string]func(*State){
		"another site is named":  func(s *State) { s.word.ActiveSite = "b" },
		"a later epoch is known": func(s *State) { s.word.Epoch = 6 },
		"it is not open":         func(s *State) { s.openEpoch = 0 },
		"it takes no writes":     func(s *State) { s.seen.Writable = false },
		"it lets nobody in":      func(s *State) { s.seen.Offline = true },
		"there is no statement":  func(s *State) { s.word = wire.Statement{} },
	} {
		s := open
		change(&s)
		if s.Archives() {
			t.Errorf("it archives although %s", name)
		}
	}
}
