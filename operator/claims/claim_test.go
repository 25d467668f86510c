// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func held(renewed string) Lease {
	return Lease{Holder: "pod-1", Renewed: renewed, Duration: 15 * time.Second}
}

// TestI1TheFirstLookIsOne: also one that shows no Lease at all.
func TestI1TheFirstLookIsOne(t *testing.T) {
	if seen := (Seen{}).Look(Lease{}, start); !seen.Since.Equal(start) || seen.Renewals != 0 {
		t.Errorf("I1: %+v", seen)
	}
}

// TestI1OneReleaseOperatesAGroup: what is taken away here lets two releases sign for one group (I1, I2, I4).
func TestI1OneReleaseOperatesAGroup(t *testing.T) {
	const own, other, third = "a/mfg-operator", "b/mfg-operator", "c/mfg-operator"
	fresh := Seen{}.Look(held("1"), start)
	leads := fresh.Look(held("2"), start)
	for name, c := range map[string]struct {
		own, holder, wanted string
		seen, heir          Seen
		after               time.Duration
		want                Verdict
		says, reason        string
	}{
		"nobody's":                         {own: own, want: Take, reason: "a group of the version before, or a new one"},
		"its own":                          {own: own, holder: own, want: Operate, reason: "also after an update of the release in place: the Lease is the same"},
		"its own, long after":              {own: own, holder: own, seen: fresh, after: time.Hour, want: Operate, reason: "who leads renews its own Lease"},
		"another's, never looked at":       {own: own, holder: other, after: time.Hour, want: Leave, says: other, reason: "nothing is known of it"},
		"another's, just seen":             {own: own, holder: other, seen: fresh, want: Leave, says: other, reason: "what its clock says proves nothing"},
		"another's, nearly run out":        {own: own, holder: other, seen: fresh, after: 60*time.Second - 1, want: Leave, says: other, reason: "its duration and the patience"},
		"another's, run out":               {own: own, holder: other, seen: fresh, after: 60 * time.Second, want: Take, reason: "its holder has stopped leading"},
		"another's, that was released":     {own: own, holder: other, seen: fresh.Look(Lease{Renewed: "2", Duration: time.Second}, start), after: 20 * time.Second, want: Leave, says: other, reason: "it is being updated in place"},
		"another's, that was deleted":      {own: own, holder: other, seen: fresh.Look(Lease{}, start), after: 20 * time.Second, want: Leave, says: other, reason: "its holder makes it again"},
		"another's, deleted long ago":      {own: own, holder: other, seen: fresh.Look(Lease{}, start), after: 60 * time.Second, want: Take, reason: "nobody made it again"},
		"another's with a long duration":   {own: own, holder: other, seen: Seen{}.Look(Lease{Holder: "p", Duration: 2 * time.Minute}, start), after: 2 * time.Minute, want: Leave, says: other, reason: "its own duration counts"},
		"wanted here, another's":           {own: own, holder: other, wanted: own, seen: fresh, want: Leave, says: other, reason: "the holder hands it over when it has ended"},
		"wanted here, nobody's":            {own: own, wanted: own, want: Take, reason: "a person said so"},
		"wanted elsewhere, nobody's":       {own: own, wanted: other, want: Leave, says: other, reason: "a person said so"},
		"wanted elsewhere, run out":        {own: own, holder: other, wanted: third, seen: fresh, after: time.Hour, want: Leave, says: third, reason: "a person said so"},
		"wanted elsewhere, its own":        {own: own, holder: own, wanted: other, heir: leads, want: HandOver, reason: "somebody leads there"},
		"wanted where nobody is seen":      {own: own, holder: own, wanted: other, heir: fresh, want: Operate, says: other, reason: "one look proves no life"},
		"wanted where nobody is":           {own: own, holder: own, wanted: other, heir: Seen{}.Look(Lease{}, start), want: Operate, says: other, reason: "a name that is mistyped must not orphan the group"},
		"wanted where it was released":     {own: own, holder: own, wanted: other, heir: leads.Look(Lease{Renewed: "3"}, start), want: Operate, says: other, reason: "nobody leads there"},
		"wanted where it has run out":      {own: own, holder: own, wanted: other, heir: leads, after: time.Hour, want: Operate, says: other, reason: "nobody leads there"},
		"without election, nobody's":       {want: Operate, reason: "for development; nothing is written"},
		"without election, another's":      {holder: other, seen: fresh, want: Leave, says: other, reason: "it is operated"},
		"without election, run out":        {holder: other, seen: fresh, after: time.Hour, want: Operate, reason: "nobody operates it"},
		"without election, wanted by name": {wanted: other, want: Leave, says: other, reason: "a person said so"},
	} {
		q := Question{Own: c.own, Wanted: c.wanted, Holder: c.seen, Heir: c.heir, Now: start.Add(c.after)}
		if c.holder != "" {
			q.Claim = &v1alpha1.GroupClaim{Lease: c.holder, Holder: "pod-1"}
		}
		got, why := Decide(q)
		if got != c.want || (why == "") != (c.says == "") || !strings.Contains(why, c.says) {
			t.Errorf("%s: %d %q, want %d: %s", name, got, why, c.want, c.reason)
		}
	}
}

// A Lease that is renewed at every look is never stale, whatever its clock says; one that is not, is stale by the own clock.
func TestI1AForeignClockProvesNothing(t *testing.T) {
	seen := Seen{}
	for i := range 100 {
		at := start.Add(time.Duration(i) * 50 * time.Second)
		if !seen.fresh(at) {
			t.Fatalf("stale after %d renewals", i)
		}
		seen = seen.Look(held("1970 and so on "+string(rune('a'+i))), at)
	}
	last := start.Add(99 * 50 * time.Second)
	again := seen.Look(held(seen.Lease.Renewed), last.Add(30*time.Second))
	if again != seen || !seen.fresh(last.Add(59*time.Second)) || seen.fresh(last.Add(60*time.Second)) {
		t.Errorf("%+v is stale at %s, seen last at %s", again, seen.StaleAt(), last)
	}
	// The same time under another holder is another Lease.
	if moved := seen.Look(Lease{Holder: "pod-2", Renewed: seen.Lease.Renewed}, last.Add(59*time.Second)); !moved.Since.Equal(last.Add(59 * time.Second)) {
		t.Error("another holder is taken for the one that was silent")
	}
}
