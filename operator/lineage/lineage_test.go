// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestTheLastChangeOfASiteI10: one that opened the site again took nothing from it, and older ones do not count.
func TestTheLastChangeOfASiteI10(t *testing.T) {
	s := factstest.World(facts.Durable{Records: []v1alpha1.FailoverRecord{{Epoch: 5, From: "b", To: "b"}, {Epoch: 4, From: "a", To: "b"}, {Epoch: 3, From: "b", To: "a"}}})
	for site, want := range map[string]struct {
		epoch    int64
		replaced bool
	}{"a": {4, true}, "b": {5, false}, "c": {0, false}} {
		if r, replaced := lastChange(s, site); r.Epoch != want.epoch || replaced != want.replaced {
			t.Errorf("I10: %s: epoch %d, replaced: %t", site, r.Epoch, replaced)
		}
	}
}

// TestWhatASuccessorHadI7: by the newest record of that very site, if it can be read.
func TestWhatASuccessorHadI7(t *testing.T) {
	record := func(from, had string) v1alpha1.FailoverRecord {
		return v1alpha1.FailoverRecord{From: from, ToExecuted: had}
	}
	s := factstest.World(facts.Durable{Records: []v1alpha1.FailoverRecord{record("c", factstest.Set("C:1").String()), record("b", factstest.Set("A:1-5").String()), record("b", factstest.Set("A:1-2").String())}})
	if got := successorHad(s, "b"); !got.Equal(factstest.Set("A:1-5")) {
		t.Errorf("I7: %s", got)
	}
	s.Status.Records[1].ToExecuted = "?"
	if got := successorHad(s, "b"); !got.IsEmpty() {
		t.Errorf("I7: %s", got)
	}
	if got := successorHad(s, "a"); !got.IsEmpty() {
		t.Errorf("I7: %s was never replaced", got)
	}
}

// TestWhatIsStillHeldOfALossI9: as far as can be seen, and in doubt all of it.
func TestWhatIsStillHeldOfALossI9(t *testing.T) {
	lost := factstest.Set("B:5-6").String()
	for name, tc := range map[string]struct {
		record v1alpha1.FailoverRecord
		known  string
		want   bool
	}{
		"it has some of it":                {v1alpha1.FailoverRecord{LostTransactions: 2, LostSet: lost}, "A:1-9", true},
		"the active site has it too":       {v1alpha1.FailoverRecord{LostTransactions: 2, LostSet: lost}, "A:1-9,B:1-6", false},
		"nothing was lost":                 {v1alpha1.FailoverRecord{LostSet: lost}, "A:1-9", false},
		"what was lost cannot be read":     {v1alpha1.FailoverRecord{LostTransactions: 2, LostSet: "?"}, "A:1-9", true},
		"it has none of what was lost":     {v1alpha1.FailoverRecord{LostTransactions: 2, LostSet: factstest.Set("B:7-8").String()}, "A:1-9", false},
		"nothing was lost, and not a word": {v1alpha1.FailoverRecord{LostSet: "?"}, "A:1-9", false},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9,B:1-6", 4))
		if got := holdsLost(s, facts.Memory{Sites: map[string]*facts.SiteMemory{"a": {Executed: factstest.Set(tc.known)}}}, tc.record, s.Sites[1]); got != tc.want {
			t.Errorf("I9: %s: %t", name, got)
		}
	}
}

// TestWhetherItIsTheServerOfItsRecordI10: what is not known counts as the same.
func TestWhetherItIsTheServerOfItsRecordI10(t *testing.T) {
	for name, tc := range map[string]struct {
		record, now string
		want        bool
	}{
		"the same":                       {"u", "u", true},
		"another":                        {"u", "v", false},
		"the record does not say":        {"", "u", true},
		"the record says it was another": {ServerReplaced, "u", false},
		"it is not seen":                 {"u", "", true},
		"it is not seen, and is another": {ServerReplaced, "", false},
	} {
		if got := sameServer(v1alpha1.FailoverRecord{FromServerUUID: tc.record}, tc.now); got != tc.want {
			t.Errorf("I10: %s: %t", name, got)
		}
	}
}
