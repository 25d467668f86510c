// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestWhichRecordsAreKeptI10: status keeps the last ten changes, and an older one only while it alone says of a site that it may have what
// the group wrote off.
func TestWhichRecordsAreKeptI10(t *testing.T) {
	old := v1alpha1.FailoverRecord{Epoch: 4, Kind: v1alpha1.FailoverEmergency, From: "c", To: "a", FromServerUUID: "c"}
	lost := old
	lost.LossExact, lost.LostTransactions, lost.LostSet = true, 1, "A:9"
	settled := old
	settled.LossExact = true
	reopened, unlisted := old, old
	reopened.To, unlisted.From = "c", "d"
	backAndForth := func(n int) []v1alpha1.FailoverRecord { // newest first
		var all []v1alpha1.FailoverRecord
		for i := range n {
			r := v1alpha1.FailoverRecord{Epoch: int64(20 - i), Kind: v1alpha1.FailoverPlanned, From: "a", To: "b", LossExact: true}
			if i%2 == 1 {
				r.From, r.To = r.To, r.From
			}
			all = append(all, r)
		}
		return all
	}
	since := v1alpha1.FailoverRecord{Epoch: 5, Kind: v1alpha1.FailoverPlanned, From: "c", To: "b", LossExact: true}
	taken := v1alpha1.FailoverRecord{Epoch: 5, Kind: v1alpha1.FailoverPlanned, From: "a", To: "c", LossExact: true}
	for name, tc := range map[string]struct {
		records []v1alpha1.FailoverRecord
		want    int
	}{
		"there are few":                            {append(backAndForth(8), old), 10},
		"there are many, none is needed":           {backAndForth(12), recordsKept},
		"one was replaced and is not compared":     {append(backAndForth(10), old), recordsKept + 1},
		"and one lost what it may still have":      {append(backAndForth(10), lost), recordsKept + 1},
		"one lost nothing":                         {append(backAndForth(10), settled), recordsKept},
		"one was opened again":                     {append(backAndForth(10), reopened), recordsKept},
		"one is not listed any more":               {append(backAndForth(10), unlisted), recordsKept},
		"a newer one speaks of the site":           {append(backAndForth(9), since, old), recordsKept},
		"a newer one that goes speaks of the site": {append(backAndForth(10), since, old), recordsKept},
		"the site had the role since":              {append(backAndForth(10), taken, old), recordsKept},
	} {
		s := factstest.World(Durable{Epoch: 21, ActiveSite: "b", Records: tc.records}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		got := withRecord(s, Transition{Kind: v1alpha1.FailoverPlanned, From: "b", To: "a"})
		if len(got) != tc.want {
			t.Errorf("I10: %s: %d records are kept, want %d", name, len(got), tc.want)
		}
		for i := range got[:len(got)-1] {
			if got[i+1].Epoch > got[i].Epoch {
				t.Errorf("%s: not the newest first: %s", name, fmt.Sprint(got))
			}
		}
	}
}

// TestASiteIsUnsettledHoweverLongItWasAwayI10: it comes back after more changes than status keeps.
func TestASiteIsUnsettledHoweverLongItWasAwayI10(t *testing.T) {
	s := factstest.World(Durable{Epoch: 5, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{{Epoch: 5, Kind: v1alpha1.FailoverEmergency, From: "c", To: "a", FromServerUUID: "c"}}},
		factstest.Seen("a", "A:1-9", 5), factstest.Seen("b", "A:1-9", 5), factstest.Seen("c", "A:1-7,C:8", 4))
	for range 3 * recordsKept {
		from, to := s.Status.ActiveSite, "b"
		if from == to {
			to = "a"
		}
		s.Status.Epoch++
		s.Status.Records, s.Status.ActiveSite = withRecord(s, Transition{Kind: v1alpha1.FailoverPlanned, From: from, To: to}), to
	}
	if len(s.Status.Records) != recordsKept+1 {
		t.Errorf("%d records are kept", len(s.Status.Records))
	}
	if !marked(s, Memory{Sites: map[string]*SiteMemory{"c": {UUID: "c"}}}).Of("c").Unsettled {
		t.Error("I10: a site that was replaced and never compared comes back as a part of the history")
	}
}
