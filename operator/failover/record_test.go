// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"slices"
	"strings"
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

// TestRecordsAreBoundedI10: ten records of large sets fit into status. What decisions read stays: what was lost, and what the successor had
// of a site that was not compared. A site that comes back is told from the group's history as before.
func TestRecordsAreBoundedI10(t *testing.T) {
	large := strings.Repeat("x", 60<<10)
	old := v1alpha1.FailoverRecord{Epoch: 4, Kind: v1alpha1.FailoverEmergency, From: "c", To: "a", FromServerUUID: "c", FromExecuted: large, ToExecuted: large}
	all := []v1alpha1.FailoverRecord{}
	for i := range recordsKept {
		r := v1alpha1.FailoverRecord{Epoch: int64(20 - i), Kind: v1alpha1.FailoverPlanned, From: "a", To: "b", LossExact: true,
			FromExecuted: large, ToExecuted: large, LostSet: "A:1-9", LostTransactions: 9, Evidence: []string{"short", large}}
		all = append(all, r)
	}
	s := factstest.World(Durable{Epoch: 21, ActiveSite: "b"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
	s.Status.Records = append(slices.Clone(all), old)
	got := withRecord(s, Transition{Kind: v1alpha1.FailoverPlanned, From: "b", To: "a", ToExecuted: factstest.Set("A:1-9"), FromExecuted: factstest.Set("A:1-9")})
	if len(got) != recordsKept+1 || got[0].ToExecuted == "" || got[0].FromExecuted == "" || got[1].ToExecuted != large {
		t.Fatalf("I10: %d are kept; the newest says %.40q", len(got), got[0].ToExecuted)
	}
	bytes := 0
	for i, r := range got {
		bytes += len(r.FromExecuted) + len(r.ToExecuted) + len(r.LostSet)
		for _, line := range r.Evidence {
			bytes += len(line)
		}
		if i > 0 && i < recordsKept && (r.LostSet != "A:1-9" || r.LostTransactions != 9 || r.Evidence[0] != "short") {
			t.Errorf("I10: the record of epoch %d lost what it counts: %d of %q, %q", r.Epoch, r.LostTransactions, r.LostSet, r.Evidence[0])
		}
	}
	if last := got[recordsKept]; last.Epoch != 4 || last.ToExecuted != large || last.FromExecuted != "" {
		t.Errorf("I10: what the successor of c had is gone: epoch %d, %d bytes", last.Epoch, len(last.ToExecuted))
	}
	if bytes > recordsBytes+2*recordsKept*evidenceBytes {
		t.Errorf("the records have %d bytes", bytes)
	}
	if all[0].Evidence[1] != large || s.Status.Records[9].ToExecuted != large {
		t.Error("what was read is changed, before it is durable")
	}
	small := s
	small.Status.Records = nil
	for range recordsKept {
		small.Status.Records = withRecord(small, Transition{Kind: v1alpha1.FailoverPlanned, From: "b", To: "a", ToExecuted: factstest.Set("A:1-9"), FromExecuted: factstest.Set("A:1-9")})
	}
	for _, r := range small.Status.Records {
		if r.FromExecuted == "" || r.ToExecuted == "" {
			t.Errorf("a record that has room lost its sets: %+v", r)
		}
	}
}

// TestTheNewestRecordKeepsItsSetI10: what the present active site was opened with is read, however large it is, and whoever lost nothing.
func TestTheNewestRecordKeepsItsSetI10(t *testing.T) {
	large := strings.Repeat("x", recordsBytes+1)
	s := factstest.World(Durable{Epoch: 5, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 5), factstest.Seen("b", "A:1-9", 5))
	got := bounded(s, []v1alpha1.FailoverRecord{{Epoch: 5, From: "b", To: "a", LossExact: true, ToExecuted: large}, {Epoch: 4, From: "b", To: "a", LossExact: true, ToExecuted: large}})
	if got[0].ToExecuted != large || got[1].ToExecuted != "" {
		t.Errorf("I10: the newest record has %d bytes, the one before it %d", len(got[0].ToExecuted), len(got[1].ToExecuted))
	}
}
