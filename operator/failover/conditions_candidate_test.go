// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
)

// These tests ask single conditions that another one hides in the whole: their order may change.

// TestWhatMakesASiteWholeI12: each of what speaks against it, alone.
func TestWhatMakesASiteWholeI12(t *testing.T) {
	for name, change := range map[string]func(*Site){
		"":                                func(*Site) {},
		"its volume is not noted":         func(b *Site) { b.Noted = false },
		"its MySQL does not answer":       func(b *Site) { b.MySQL.Direct = false },
		"nothing is known of clones":      func(b *Site) { b.MySQL.NoClone = true },
		"a clone did not end well":        func(b *Site) { b.MySQL.HalfCloned = true },
		"a clone is under way":            func(b *Site) { b.MySQL.Cloning = true },
		"it is being cloned by the group": func(b *Site) { b.Busy = WorkClone },
		"it is empty":                     func(b *Site) { b.MySQL.Executed = gtid.Set{} },
	} {
		b := factstest.Seen("b", "A:1-9", 4)
		b.Noted = true
		change(&b)
		if got := b.Whole(); got != (name == "") {
			t.Errorf("I12: %s: whole %t", name, got)
		}
	}
}

// TestWhoIsUnsettledI10: only who was replaced, and only by what its own newest record says.
func TestWhoIsUnsettledI10(t *testing.T) {
	replaced := v1alpha1.FailoverRecord{Epoch: 4, From: "b", To: "c", FromServerUUID: "b"}
	other := v1alpha1.FailoverRecord{Epoch: 5, From: "c", To: "a"}
	for name, tc := range map[string]struct {
		status  Durable
		records []v1alpha1.FailoverRecord
		want    bool
	}{
		"it was replaced":                        {Durable{ActiveSite: "a"}, []v1alpha1.FailoverRecord{replaced}, true},
		"so was another one since":               {Durable{ActiveSite: "a"}, []v1alpha1.FailoverRecord{other, replaced}, true},
		"only another one was":                   {Durable{ActiveSite: "a"}, []v1alpha1.FailoverRecord{other}, false},
		"another one was, and its loss is known": {Durable{ActiveSite: "a"}, []v1alpha1.FailoverRecord{{From: "c", To: "a", LossExact: true, LostTransactions: 1, LostSet: factstest.Set("A:9").String()}}, false},
		"it is the active site":                  {Durable{ActiveSite: "b"}, []v1alpha1.FailoverRecord{replaced}, false},
		"the role moves away from it":            {Durable{ActiveSite: "a", Transition: &Transition{From: "b", To: "a"}}, []v1alpha1.FailoverRecord{replaced}, false},
		"the role moves away from another site":  {Durable{ActiveSite: "a", Transition: &Transition{From: "c", To: "a"}}, []v1alpha1.FailoverRecord{replaced}, true},
	} {
		s := factstest.World(tc.status, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		s.Status.Records = tc.records
		if got := marked(s, Memory{Sites: map[string]*SiteMemory{"b": {UUID: "b"}}}).Of("b").Unsettled; got != tc.want {
			t.Errorf("I10: %s: unsettled %t", name, got)
		}
	}
}

// TestABrokenApplierI7: it has something to apply, was seen, and has stopped with an error.
func TestABrokenApplierI7(t *testing.T) {
	for name, change := range map[string]func(*Site){
		"":                         func(*Site) {},
		"its MySQL was not seen":   func(b *Site) { b.MySQL.Direct = false },
		"it has applied all":       func(b *Site) { b.MySQL.Retrieved = factstest.Set("A:1-9") },
		"it runs":                  func(b *Site) { b.MySQL.SQLRunning = true },
		"it stopped without error": func(b *Site) { b.MySQL.SQLError = "" },
	} {
		b := factstest.Seen("b", "A:1-9", 4)
		b.MySQL.Retrieved, b.MySQL.SQLError = factstest.Set("A:10"), "broken"
		change(&b)
		if got := lineage.BrokenApplier(b); got != (name == "") {
			t.Errorf("I7: %s: broken %t", name, got)
		}
	}
}

// TestTheEpochThatTheSitesKnowI2: who is heard, and who of them is open under the highest epoch.
func TestTheEpochThatTheSitesKnowI2(t *testing.T) {
	open := func(epoch int64, x *Site) {
		x.Sidecar.Report.Epoch, x.Sidecar.Report.Writable, x.Sidecar.Report.ActiveSite = epoch, true, x.Name
	}
	for name, tc := range map[string]struct {
		change func(s *Snapshot, b, c *Site)
		writer string
		behind bool
	}{
		"b is open under a newer epoch":         {func(_ *Snapshot, b, _ *Site) { open(7, b) }, "b", true},
		"no newer epoch":                        {func(*Snapshot, *Site, *Site) {}, "", false},
		"b is open under this epoch":            {func(_ *Snapshot, b, _ *Site) { open(4, b) }, "", false},
		"b does not answer":                     {func(_ *Snapshot, b, _ *Site) { open(7, b); b.Sidecar.Answered = false }, "", false},
		"b is on another volume":                {func(_ *Snapshot, b, _ *Site) { open(7, b); b.OtherVolume = true }, "", false},
		"b left the specification":              {func(_ *Snapshot, b, _ *Site) { open(7, b); b.Removed = true }, "", false},
		"b holds no data of the group":          {func(_ *Snapshot, b, _ *Site) { open(7, b); b.Provisioned = false }, "", false},
		"the same, and nothing is known at all": {func(s *Snapshot, b, _ *Site) { open(7, b); b.Provisioned, s.Status.Epoch = false, 0 }, "b", true},
		"c knows a newer one":                   {func(_ *Snapshot, b, c *Site) { open(7, b); c.Sidecar.Report.Epoch = 8 }, "", true},
		"c knows an older one":                  {func(_ *Snapshot, b, c *Site) { open(7, b); open(6, c) }, "b", true},
		"c knew an older one before":            {func(_ *Snapshot, b, c *Site) { open(6, b); open(7, c) }, "c", true},
		"two say that they are it":              {func(_ *Snapshot, b, c *Site) { open(7, b); open(7, c) }, "", true},
		"what b says of its MySQL is old":       {func(_ *Snapshot, b, _ *Site) { open(7, b); b.Sidecar.Report.Answered = false }, "", true},
		"b is read-only":                        {func(_ *Snapshot, b, _ *Site) { open(7, b); b.Sidecar.Report.Writable = false }, "", true},
		"b says that it is another":             {func(_ *Snapshot, b, _ *Site) { open(7, b); b.Sidecar.Report.ActiveSite = "c" }, "", true},
		"b is a replica":                        {func(_ *Snapshot, b, _ *Site) { open(7, b); b.MySQL.ReplicaHost = "c" }, "", true},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		tc.change(&s, &s.Sites[0], &s.Sites[1])
		if writer, behind := BehindTheSites(s); writer != tc.writer || behind != tc.behind {
			t.Errorf("I2: %s: %q, behind %t", name, writer, behind)
		}
	}
}

// TestCatchingUpI2: the site that is open stays so, under an epoch that nobody has used, and nothing of the old status goes on.
func TestCatchingUpI2(t *testing.T) {
	b := factstest.Seen("b", "A:1-9", 7)
	b.Sidecar.Report.Writable, b.Sidecar.Report.ActiveSite = true, "b"
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", ActiveSince: factstest.Start.Add(-time.Hour), Transition: &Transition{From: "a", To: "b"}}, factstest.Seen("a", "A:1-9", 4), b)
	d := Decide(s, Memory{})
	got := d.Status
	if got.Epoch != 8 || got.ActiveSite != "b" || got.Transition != nil || !got.ActiveSince.Equal(s.Now) || !d.Persist || !d.Hold || d.Reason != v1alpha1.ReasonStatusBehind {
		t.Errorf("I2: %+v hold %t: %s", got, d.Hold, d.Reason)
	}
	d = catchUp(s, Decision{Status: s.Status}, "b")
	if !d.Hold || d.Next != time.Millisecond {
		t.Errorf("I2: it holds only because somebody else said so: %+v", d)
	}
	if selected, is := d.Effects[0].(Select); !is || selected.Site != "b" {
		t.Errorf("%v", d.Effects)
	}
	if _, is := d.Effects[1].(Announce); !is {
		t.Errorf("%v", d.Effects)
	}
}

// TestTheSoonerLookCounts: within never puts a look off.
func TestTheSoonerLookCounts(t *testing.T) {
	for _, tc := range []struct{ was, asked, want time.Duration }{
		{0, 5, 5}, {3, 5, 3}, {5, 3, 3}, {5, 0, 5}, {5, -1, 5}, {0, 0, 0},
	} {
		if got := (Decision{Next: tc.was}).within(tc.asked).Next; got != tc.want {
			t.Errorf("%d within %d: %d", tc.was, tc.asked, got)
		}
	}
}
