// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var numbers = map[string]uint32{"a": 1, "b": 2, "c": 3}

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

// own is a transaction that a client of a site made.
func own(site string, ms int) Transaction {
	return Transaction{
		Site: site, GTID: fmt.Sprintf("%s:%d", site, ms), At: at(ms), Original: at(ms), Server: numbers[site], Writer: numbers[site],
	}
}

// applied is one that a site has from another one.
func applied(site, from string, ms, original int) Transaction {
	t := own(from, original)
	t.Site, t.At, t.Writer = site, at(ms), numbers[site]
	return t
}

func turns(sites ...string) []Turn {
	var all []Turn
	for n, site := range sites {
		all = append(all, Turn{Site: site, Epoch: int64(n + 1)})
	}
	return all
}

// I1: at most one site accepts commits, by the servers' own timestamps.
func TestOverlaps(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		all    []Transaction
		turns  []Turn
		want   []string // site*count of every overlap
	}{
		"nothing":         {reason: "no commits, no writers", turns: turns("a")},
		"clean":           {reason: "a's last is before b's first", all: []Transaction{own("a", 1), own("a", 5), own("b", 6)}, turns: turns("a", "b")},
		"no order needed": {reason: "logs come one after the other", all: []Transaction{own("b", 6), own("a", 5)}, turns: turns("a", "b")},
		"replication": {
			reason: "what the applier commits on a replica, however late, is no client's",
			all:    []Transaction{own("a", 1), applied("b", "a", 2, 1), own("b", 6), applied("a", "b", 7, 6), applied("b", "a", 8, 1)},
			turns:  turns("a", "b"),
		},
		"late commit of the old site": {
			reason: "begun before the fence and committed after b had opened; no writer needs to have learned of it",
			all:    []Transaction{own("a", 1), own("b", 6), own("a", 7), own("b", 8)}, turns: turns("a", "b"), want: []string{"a*1"},
		},
		"many of them": {
			reason: "one run is one overlap, b's own commits in between do not split it into hundreds",
			all:    []Transaction{own("a", 1), own("b", 6), own("a", 7), own("b", 8), own("a", 9)}, turns: turns("a", "b"), want: []string{"a*2"},
		},
		"at the same microsecond": {
			reason: "a sorts first, and is within its turn; the next one is not",
			all:    []Transaction{own("b", 6), own("a", 6), own("a", 7)}, turns: turns("a", "b"), want: []string{"a*1"},
		},
		"opened before its epoch": {
			reason: "b committed although its epoch was not persisted yet: I2",
			all:    []Transaction{own("a", 1), own("b", 6), own("b", 11)},
			turns:  []Turn{{Site: "a", Epoch: 1}, {Site: "b", Epoch: 2, Began: at(10)}}, want: []string{"b*1"},
		},
		"there and back": {
			reason: "two failovers bring a back", all: []Transaction{own("a", 1), own("b", 3), own("a", 5)}, turns: turns("a", "b", "a"),
		},
		"back too early": {
			reason: "a wrote in b's turn, and its own next turn had not begun",
			all:    []Transaction{own("a", 1), own("b", 3), own("a", 4), own("a", 12)},
			turns:  []Turn{{Site: "a"}, {Site: "b"}, {Site: "a", Began: at(10)}}, want: []string{"a*1"},
		},
		"never active": {reason: "c is dr-only", all: []Transaction{own("a", 1), own("c", 3)}, turns: turns("a", "b"), want: []string{"c*1"}},
		"a turn without commits": {
			reason: "b was active for so short a time that nobody wrote", all: []Transaction{own("a", 1), own("c", 3)}, turns: turns("a", "b", "c"),
		},
		"before its turn": {
			reason: "b commits, and a goes on: a is out of turn from then on, wherever b got the role from",
			all:    []Transaction{own("a", 1), own("b", 2), own("a", 3)}, turns: turns("a", "b"), want: []string{"a*1"},
		},
		"no turns": {reason: "without an active site nobody may write", all: []Transaction{own("a", 1)}, want: []string{"a*1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range Overlaps(tt.all, tt.turns) {
				got = append(got, fmt.Sprintf("%s*%d", o.Site, o.Count))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, want %v: %v", tt.reason, got, tt.want, Overlaps(tt.all, tt.turns))
			}
		})
	}
}

// Both signs of a site's own transaction are needed.
func TestOwn(t *testing.T) {
	foreign, late := own("a", 1), own("a", 1)
	foreign.Server = 9
	late.Original = at(0)
	for name, tt := range map[string]struct {
		t    Transaction
		want bool
	}{
		"its own": {own("a", 1), true}, "of another server": {foreign, false}, "its own, come back": {late, false}, "applied": {applied("b", "a", 2, 1), false},
	} {
		if got := tt.t.Own(); got != tt.want {
			t.Errorf("%s: own = %t", name, got)
		}
	}
}

func TestHoles(t *testing.T) {
	all := []Transaction{own("a", 1), own("a", 2), applied("b", "a", 3, 1)}
	for name, tt := range map[string]struct {
		acked map[string]int
		want  int
	}{
		"whole":                      {map[string]int{"a": 2}, 0},
		"more than was acknowledged": {map[string]int{"a": 1}, 0},
		"a log is missing":           {map[string]int{"a": 3}, 1},
		"what was applied is no proof of a commit": {map[string]int{"b": 1}, 1},
	} {
		if got := Holes(all, tt.acked); len(got) != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHandovers(t *testing.T) {
	got := Handovers([]Transaction{own("b", 9), own("a", 1), own("a", 4), applied("a", "b", 10, 9), own("a", 12)})
	want := []Handover{{"a", "b", 5 * time.Millisecond}, {"b", "a", 3 * time.Millisecond}}
	if !slices.Equal(got, want) {
		t.Errorf("handovers %v, want %v", got, want)
	}
}

// Whatever the history, a commit of the old site after the new one's first is always found.
func TestTwoWritersAreAlwaysFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites, now := []string{"a", "b", "c"}, 0
		var all []Transaction
		var order []Turn
		for n := range rapid.IntRange(2, 5).Draw(t, "turns") {
			site := sites[(n+rapid.IntRange(0, 1).Draw(t, "skip"))%3]
			now++
			order = append(order, Turn{Site: site, Epoch: int64(n), Began: at(now)})
			for range rapid.IntRange(1, 5).Draw(t, "commits") {
				now += rapid.IntRange(1, 9).Draw(t, "later")
				all = append(all, own(site, now), applied(sites[(n+1)%3], site, now+rapid.IntRange(1, 99).Draw(t, "lag"), now))
			}
		}
		all = slices.DeleteFunc(all, func(t Transaction) bool { return t.Site == "" })
		shuffled := rapid.Permutation(all).Draw(t, "shuffled")
		if got := Overlaps(shuffled, order); len(got) > 0 {
			t.Fatalf("the turns are apart, and yet: %v in %v", got, order)
		}
		last := order[len(order)-1].Site
		stranger := rapid.SampledFrom(slices.DeleteFunc(slices.Clone(sites), func(s string) bool { return s == last })).Draw(t, "stranger")
		if got := Overlaps(append(shuffled, own(stranger, now+1)), order); len(got) == 0 {
			t.Fatalf("%s committed in the turn of %s, and nobody saw it", stranger, last)
		}
	})
}
