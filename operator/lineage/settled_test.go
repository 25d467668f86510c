// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestASiteThatWasOpenedAgainHasNoSuccessorI7: its record is of itself, and none of what it has was written off.
func TestASiteThatWasOpenedAgainHasNoSuccessorI7(t *testing.T) {
	had := factstest.Set("A:1-5").String()
	s := factstest.World(facts.Durable{Records: []v1alpha1.FailoverRecord{{From: "b", To: "b", ToExecuted: had}, {From: "c", To: "a", ToExecuted: had}}})
	if got := successorHad(s, "b"); !got.IsEmpty() {
		t.Errorf("I7: what it had itself passes for a successor's: %s", got)
	}
	if got := successorHad(s, "a"); !got.IsEmpty() {
		t.Errorf("I7: a site that took over passes for one that was replaced: %s", got)
	}
}

// TestWhatCountsOfASiteI7: of a diverged one nothing, also of what its successor had; of one that is not settled that much.
func TestWhatCountsOfASiteI7(t *testing.T) {
	record := v1alpha1.FailoverRecord{Epoch: 4, From: "b", To: "a", FromServerUUID: "b", ToExecuted: factstest.Set("A:1-5").String()}
	for name, tc := range map[string]struct {
		change   func(*facts.Site)
		record   bool
		diverged string
		want     string
	}{
		"of the group":            {func(*facts.Site) {}, false, "", "A:1-9"},
		"not settled":             {func(*facts.Site) {}, true, "", "A:1-5"},
		"diverged":                {func(*facts.Site) {}, false, "A:9", ""},
		"diverged, and replaced":  {func(*facts.Site) {}, true, "A:9", ""},
		"no data of the group":    {func(b *facts.Site) { b.Provisioned = false }, true, "", ""},
		"on another volume":       {func(b *facts.Site) { b.OtherVolume = true }, true, "", ""},
		"it does not answer":      {factstest.Silence, true, "", ""},
		"a clone takes its place": {func(b *facts.Site) { b.Busy = facts.WorkClone }, true, "", ""},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		if tc.record {
			s.Status.Records = []v1alpha1.FailoverRecord{record}
		}
		tc.change(&s.Sites[1])
		m := facts.Memory{Sites: map[string]*facts.SiteMemory{"b": {UUID: "b", Diverged: factstest.Set(tc.diverged)}}}
		MarkUnsettled(s, &m)
		if got := held(s, m, s.Sites[1]); !got.Equal(factstest.Set(tc.want)) {
			t.Errorf("I7: %s: %s counts, want %s", name, factstest.Short(got.String()), tc.want)
		}
	}
}

// TestALossOfNothingTakesNoDivergenceBackI10: what was found of the site in this poll, or before, stands beside what its record says.
func TestALossOfNothingTakesNoDivergenceBackI10(t *testing.T) {
	for name, tc := range map[string]struct{ before, known, want, lost string }{
		"nothing is lost":                    {"A:1-9", "", "", ""},
		"nothing is lost, and it is another": {"A:1-9", "C:1", "C:1", ""},
		"it has more":                        {"A:1-9,B:1-2", "", "B:1-2", "B:1-2"},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{{Epoch: 4, From: "b", To: "a", FromServerUUID: "b"}}},
			factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		before := factstest.Set(tc.before)
		m := facts.Memory{Sites: map[string]*facts.SiteMemory{"b": {UUID: "b", PreviousAll: &before, Diverged: factstest.Set(tc.known)}}}
		r := SettleLoss(s, m, s.Sites[0])[0]
		if !r.LossExact || r.LostSet != factstest.Set(tc.lost).String() || r.LostTransactions != factstest.Set(tc.lost).Count() {
			t.Errorf("I10: %s: %+v", name, r)
		}
		if got := m.Of("b").Diverged; !got.Equal(factstest.Set(tc.want)) {
			t.Errorf("I10: %s: diverged %s, want %s", name, factstest.Short(got.String()), tc.want)
		}
	}
}
