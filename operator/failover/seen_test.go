// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/views"
)

var update = flag.Bool("update", false, "rewrite golden/seen.txt")

// TestWhatIsSeenOfEachWorld: what sites count as, and which rules speak, in worlds that differ in one thing each. Whoever changes
// golden/seen.txt reads what else has changed.
func TestWhatIsSeenOfEachWorld(t *testing.T) {
	var out strings.Builder
	for _, w := range worlds() {
		s, m := w.make(), Memory{Sites: map[string]*SiteMemory{"a": {Executed: factstest.Set("A:1-1000")}}}
		for _, change := range w.changes {
			change(&s, &m)
		}
		d := Decide(s, m)
		e := Explain(s, m, d)
		fmt.Fprintf(&out, "%s\n  %s %s %s hope=%q urgent=%t unheard=%t\n", w.name, d.Topology, d.Verdict, d.Reason, d.lastCandidate(s), d.Urgent(), d.Unheard(s))
		for _, v := range d.Views {
			fmt.Fprintf(&out, "  %s %s %s %s behind=%d errant=%q%s: %s\n", v.Name, v.State, v.Role, v.Reason, v.Behind, v.Errant, marks(v), v.Message)
		}
		for _, r := range e.Rules {
			fmt.Fprintf(&out, "  rule %s %s %s: %s; %s\n", r.Name, r.Verdict, r.Reason, r.Input, r.Remedy)
		}
		for _, c := range e.Candidates {
			fmt.Fprintf(&out, "  candidate %s fit=%t by %s, planned %q\n", c.Site, c.Fit, c.RankedBy, c.PlannedBlockedBy)
		}
		if f := d.Forecast; f != nil {
			fmt.Fprintf(&out, "  forecast %q by %s, blocked %q, lag known=%t: %s\n", f.Site, f.Rule, f.BlockedBy, f.LostSeconds != nil, f.Message)
		}
		if e.Loss != nil {
			fmt.Fprintf(&out, "  loss to %s %q known=%t: %s\n", e.Loss.Site, e.Loss.Set, e.Loss.Transactions != nil, e.Loss.Message)
		}
		fmt.Fprintf(&out, "  now=%t by %q blockers=%v\n\n", e.Now, e.DecidedBy, e.Blockers)
	}
	if *update {
		if err := os.WriteFile("golden/seen.txt", []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("golden/seen.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("go test ./operator/failover -run TestWhatIsSeenOfEachWorld -update writes it anew:\n%s", diff)
	}
}

func marks(v views.View) string {
	out := ""
	for _, m := range []struct {
		name string
		is   bool
	}{{"healthy", v.Healthy}, {"serves", v.Serves}, {"readable", v.Readable}, {"protected", v.Protected}, {"gone", v.Gone}} {
		if m.is {
			out += " " + m.name
		}
	}
	return out
}

type seenWorld struct {
	name    string
	make    func() Snapshot
	changes []func(*Snapshot, *Memory)
}

// failingOver is a failover from a, of which nothing is seen, to b.
func failingOver() Snapshot {
	s := factstest.AtRest()
	factstest.Silence(&s.Sites[0])
	for i := range s.Sites[1:] {
		m := &s.Sites[i+1].MySQL
		m.ReplicaOf, m.ReplicaHost, m.ReceiverStopped, m.IORunning, m.SQLRunning = "", "", true, false, false
	}
	s.Status.ActiveSite, s.Status.Transition = "b", &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "a", To: "b",
		StartedAt: factstest.Start, DetectedAt: factstest.Start, FromExecuted: factstest.Set("A:1-1000")}
	return s
}

func worlds() []seenWorld {
	var all []seenWorld
	add := func(name string, base func() Snapshot, changes ...func(*Snapshot, *Memory)) {
		all = append(all, seenWorld{name, base, changes})
	}
	lag := func(seconds float64) *float64 { return &seconds }
	long := func(s *Snapshot, m *Memory) {
		m.At("a").SilentPolls, m.At("b").SilentPolls, m.At("c").SilentPolls = 9, 9, 9
		for _, site := range s.Sites {
			m.At(site.Name).DownSince = s.Now.Add(-time.Minute)
		}
	}
	each := func(i int, change func(*Site)) func(*Snapshot, *Memory) {
		return func(s *Snapshot, _ *Memory) { change(&s.Sites[i]) }
	}
	silent := func(i int) func(*Snapshot, *Memory) { return each(i, factstest.Silence) }
	policy := func(change func(*Policy)) func(*Snapshot, *Memory) {
		return func(s *Snapshot, _ *Memory) { change(&s.Policy) }
	}
	budget, none := int64(5), int64(0)

	add("at rest", factstest.AtRest)
	add("a is silent", factstest.AtRest, silent(0))
	add("a is silent for long", factstest.AtRest, silent(0), long)
	add("a is silent for long, c too", factstest.AtRest, silent(0), silent(2), long)
	add("a has outlived its lease, and is silent for long", factstest.AtRest, silent(0), long, func(_ *Snapshot, m *Memory) { m.At("a").Outlived = true })
	add("a has outlived its lease", factstest.AtRest, func(_ *Snapshot, m *Memory) { m.At("a").Outlived = true }, func(s *Snapshot, _ *Memory) { s.Status.Outlived = []string{"a"} })
	add("all are silent for long", factstest.AtRest, silent(0), silent(1), silent(2), long)
	add("all are silent for a moment", factstest.AtRest, silent(0), silent(1), silent(2))
	add("a's MySQL is down", factstest.AtRest, each(0, func(a *Site) { a.MySQL = MySQL{}; a.Sidecar.Report.Answered, a.Sidecar.Report.Writable = false, false }))
	add("a's MySQL is down for long", factstest.AtRest, each(0, func(a *Site) { a.MySQL = MySQL{}; a.Sidecar.Report.Answered, a.Sidecar.Report.Writable = false, false }), long)
	add("a's sidecar is down", factstest.AtRest, each(0, func(a *Site) { a.Sidecar = Sidecar{} }))
	readOnly := each(0, func(a *Site) { *a = factstest.Seen("a", "A:1-1000", 4) })
	add("a is read-only", factstest.AtRest, readOnly)
	add("a is read-only, and its sidecar is down", factstest.AtRest, readOnly, each(0, func(a *Site) { a.Sidecar = Sidecar{} }))
	add("a is read-only, and followed", factstest.AtRest, readOnly, func(s *Snapshot, m *Memory) {
		m.OpenAt = s.Now.Add(-time.Minute)
		m.At("b").FollowedAt, m.At("c").FollowedAt = s.Now.Add(-time.Minute), s.Now.Add(-time.Minute-10*time.Second)
	})
	add("a is read-only, does not open", factstest.AtRest, readOnly, func(s *Snapshot, m *Memory) { m.ReopenSince = s.Now.Add(-time.Hour) }, policy(func(p *Policy) { p.Mode = v1alpha1.FailoverManual }))
	add("a is read-only, not escrowed", factstest.AtRest, readOnly, each(0, func(a *Site) { a.Sidecar.Report.Keyring = factstest.Keyring("behind") }))
	add("a is read-only, ordered", factstest.AtRest, readOnly, policy(func(p *Policy) { p.ForceTo = "a" }))
	add("a is open, b is ordered", factstest.AtRest, policy(func(p *Policy) { p.ForceTo = "b" }))
	add("a is silent for long, b is ordered", factstest.AtRest, silent(0), long, policy(func(p *Policy) { p.ForceTo = "b" }))
	add("a is silent for long, x is ordered", factstest.AtRest, silent(0), long, policy(func(p *Policy) { p.ForceTo = "x" }))
	for _, mode := range []v1alpha1.FailoverMode{v1alpha1.FailoverManual, v1alpha1.FailoverObserve} {
		add("mode "+string(mode), factstest.AtRest, policy(func(p *Policy) { p.Mode = mode }))
		add("a is silent for long, mode "+string(mode), factstest.AtRest, silent(0), long, policy(func(p *Policy) { p.Mode = mode }))
	}
	add("paused", factstest.AtRest, policy(func(p *Policy) { p.PausedUntil = factstest.Start.Add(time.Hour) }))
	add("a is silent for long, cooldown", factstest.AtRest, silent(0), long, func(s *Snapshot, _ *Memory) { s.Status.CooldownUntil = s.Now.Add(time.Minute) })
	add("budget of five", factstest.AtRest, policy(func(p *Policy) { p.MaxLost = &budget }))
	add("budget of none, b lacks one", factstest.AtRest, policy(func(p *Policy) { p.MaxLost = &none }), each(1, func(b *Site) { b.MySQL.Executed = factstest.Set("A:1-999") }), each(2, func(c *Site) { c.MySQL.Executed = factstest.Set("A:1-999") }))
	add("nothing is known of a", factstest.AtRest, silent(0), long, func(s *Snapshot, m *Memory) {
		for _, site := range s.Sites {
			m.At(site.Name).Executed = gtid.Set{}
		}
	})
	add("b is dr-only, c is gone", factstest.AtRest, each(1, func(b *Site) { b.Role = v1alpha1.DROnly }), silent(2))
	add("b is dr-only, c is gone, a too", factstest.AtRest, each(1, func(b *Site) { b.Role = v1alpha1.DROnly }), silent(2), silent(0), long)
	add("b is not escrowed", factstest.AtRest, each(1, func(b *Site) { b.Sidecar.Report.Keyring = factstest.Keyring("behind") }), silent(2))
	add("b is not escrowed, and leaves", factstest.AtRest, each(1, func(b *Site) { b.Sidecar.Report.Keyring = factstest.Keyring("behind"); b.Leaving = "drained" }))
	add("b is not escrowed, and is updated", factstest.AtRest, each(1, func(b *Site) { b.Sidecar.Report.Keyring = factstest.Keyring("behind"); b.Leaving = LeavingForUpdate }))
	add("b's escrow Secret is gone", factstest.AtRest, each(1, func(b *Site) { b.EscrowMissing = true }), silent(2))
	add("b's escrow Secret is gone, and it leaves", factstest.AtRest, each(1, func(b *Site) { b.EscrowMissing = true; b.Leaving = "drained" }))
	add("b is the only one, and leaves", factstest.AtRest, each(1, func(b *Site) { b.Leaving = "drained" }), silent(2))
	add("b is the only one, and is updated", factstest.AtRest, each(1, func(b *Site) { b.Leaving = LeavingForUpdate }), silent(2))
	add("b and c leave", factstest.AtRest, each(1, func(b *Site) { b.Leaving = "drained" }), each(2, func(c *Site) { c.Leaving = "drained" }))
	add("b and c leave, and c was the hope", factstest.AtRest, each(1, func(b *Site) { b.Leaving = "drained" }), each(2, func(c *Site) { c.Leaving = "drained" }), func(s *Snapshot, m *Memory) { m.At("c").LastCandidateAt = s.Now.Add(-time.Second) })
	add("b leaves", factstest.AtRest, each(1, func(b *Site) { b.Leaving = "drained" }))
	gave := func(phase v1alpha1.PlannedPhase, cause Reason, left, over time.Duration) func(*Snapshot, *Memory) {
		return func(s *Snapshot, m *Memory) {
			s.Status.Planned = &Planned{From: "b", To: "a", Cause: cause, Phase: phase, FinishedAt: s.Now.Add(-over), Answered: true}
			m.At("b").LeavingSince = s.Now.Add(-left)
			m.At("b").LastCandidateAt = s.Now
		}
	}
	leaves := each(1, func(b *Site) { b.Leaving = "drained" })
	add("b has given its role away, and leaves", factstest.AtRest, leaves, silent(2), gave(v1alpha1.PlannedSucceeded, v1alpha1.ReasonSiteLeaving, time.Minute, time.Second))
	add("b gave it away long ago, and leaves again", factstest.AtRest, leaves, silent(2), gave(v1alpha1.PlannedSucceeded, v1alpha1.ReasonSiteLeaving, time.Minute, time.Hour))
	add("b gave it away lately, and leaves again", factstest.AtRest, leaves, silent(2), gave(v1alpha1.PlannedSucceeded, v1alpha1.ReasonSiteLeaving, time.Second, time.Minute))
	add("b gave it away long ago, and leaves since", factstest.AtRest, leaves, silent(2), gave(v1alpha1.PlannedSucceeded, v1alpha1.ReasonSiteLeaving, 2*time.Hour, time.Hour))
	add("b was asked to give it away, and leaves", factstest.AtRest, leaves, silent(2), gave(v1alpha1.PlannedSucceeded, v1alpha1.ReasonRequested, time.Minute, time.Second))
	add("b could not give it away, and leaves", factstest.AtRest, leaves, silent(2), gave(v1alpha1.PlannedReverted, v1alpha1.ReasonSiteLeaving, time.Minute, time.Second))
	add("b has given its role away, and stays", factstest.AtRest, silent(2), gave(v1alpha1.PlannedSucceeded, v1alpha1.ReasonSiteLeaving, time.Minute, time.Second))
	add("b is far behind", factstest.AtRest, each(1, func(b *Site) { b.MySQL.LagSeconds = lag(30); b.MySQL.Executed = factstest.Set("A:1-100") }))
	add("b is far behind, with a limit to reads", factstest.AtRest, each(1, func(b *Site) { b.MySQL.LagSeconds = lag(30) }), policy(func(p *Policy) { p.MaxReadLag = 10 * time.Second }))
	add("b's lag is not known, with a limit to reads", factstest.AtRest, each(1, func(b *Site) { b.MySQL.LagSeconds = nil }), policy(func(p *Policy) { p.MaxReadLag = 10 * time.Second }))
	add("b has something to apply", factstest.AtRest, each(1, func(b *Site) {
		b.MySQL.Executed, b.MySQL.Retrieved = factstest.Set("A:1-990"), factstest.Set("A:991-1000")
	}))
	add("c has a higher priority", factstest.AtRest, each(2, func(c *Site) { c.Priority = 7 }))
	add("c has less", factstest.AtRest, each(2, func(c *Site) { c.MySQL.Executed = factstest.Set("A:1-999") }))
	add("b follows c", factstest.AtRest, each(1, func(b *Site) { b.MySQL.ReplicaOf = "c" }))
	add("b has diverged", factstest.AtRest, each(1, func(b *Site) { b.MySQL.Executed = factstest.Set("A:1-1000,B:1") }), func(_ *Snapshot, m *Memory) { m.At("b").PreviousAll = new(factstest.Set("A:1-1000,B:1")) })
	add("b has diverged, and is worked on", factstest.AtRest, each(1, func(b *Site) { b.MySQL.Executed = factstest.Set("A:1-1000,B:1"); b.Busy = WorkRotation }), func(_ *Snapshot, m *Memory) { m.At("b").PreviousAll = new(factstest.Set("A:1-1000,B:1")) })
	add("b diverged, holds no data of the group now", factstest.AtRest, each(1, func(b *Site) { b.Provisioned = false; factstest.Silence(b) }), func(_ *Snapshot, m *Memory) { m.At("b").Diverged = factstest.Set("B:1") })
	add("b is being cloned", factstest.AtRest, each(1, func(b *Site) { b.Busy = WorkClone }))
	add("b's epoch is impossible", factstest.AtRest, each(1, func(b *Site) { b.Sidecar.Report.Epoch = wire.MaxEpoch }))
	add("b accepts writes", factstest.AtRest, each(1, func(b *Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false }))
	add("b keeps readers out", factstest.AtRest, each(1, func(b *Site) { b.MySQL.OfflineMode = true }))
	add("b keeps readers out for XA", factstest.AtRest, each(1, func(b *Site) { b.MySQL.OfflineMode = true; b.Sidecar.Report.PreparedXA = 2 }))
	add("b keeps readers out, and does not follow", factstest.AtRest, each(1, func(b *Site) { b.MySQL.OfflineMode, b.MySQL.IORunning = true, false }))
	add("b lacks rows", factstest.AtRest, each(0, func(a *Site) { a.Sidecar.Report.Engines = &wire.EngineReport{Tables: 2, WithRows: 2} }), each(1, func(b *Site) { b.Sidecar.Report.Engines = &wire.EngineReport{Tables: 2, WithRows: 1} }))
	add("b lacks rows, and does not follow", factstest.AtRest, each(0, func(a *Site) { a.Sidecar.Report.Engines = &wire.EngineReport{Tables: 2, WithRows: 2} }), each(1, func(b *Site) {
		b.Sidecar.Report.Engines = &wire.EngineReport{Tables: 2, WithRows: 1}
		b.MySQL.IORunning = false
	}))
	add("c left", factstest.AtRest, each(2, func(c *Site) { c.Removed = true }))
	add("c left, and has a pod", factstest.AtRest, each(2, func(c *Site) { c.Removed, c.Pod.Exists = true, true }))
	add("c left, and is listed", factstest.AtRest, each(2, func(c *Site) { c.Removed, c.Listed = true, true }))
	add("c left, and a is silent", factstest.AtRest, each(2, func(c *Site) { c.Removed = true }), silent(0))
	add("a cannot be written to", factstest.AtRest, each(0, func(a *Site) {
		a.Sidecar.Report.WriteProbe = &wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull, ForMillis: 3_600_000}
	}))
	add("a leaves", factstest.AtRest, each(0, func(a *Site) { a.Leaving = "drained" }))
	add("there is no active site", factstest.AtRest, func(s *Snapshot, _ *Memory) { s.Status = Durable{} }, readOnly)
	add("there is none, and b is not escrowed", factstest.AtRest, func(s *Snapshot, _ *Memory) { s.Status = Durable{} }, readOnly, each(0, func(a *Site) { a.Sidecar.Report.Keyring = factstest.Keyring("behind") }))
	add("status is behind", factstest.AtRest, func(s *Snapshot, _ *Memory) { s.Status.Epoch = 3 })
	add("status is behind, and nobody is open", factstest.AtRest, func(s *Snapshot, _ *Memory) { s.Status.Epoch = 3 }, readOnly)
	add("a has just been silent for many polls", factstest.AtRest, silent(0), func(s *Snapshot, m *Memory) {
		m.At("a").SilentPolls, m.At("a").DownSince = 9, s.Now
	})
	add("a is down, and b was not escrowed", factstest.AtRest, silent(0), long, silent(2), each(1, func(b *Site) { b.Sidecar.Report.Keyring = factstest.Keyring("behind") }))
	add("a is read-only, and nobody follows", factstest.AtRest, readOnly, each(1, func(b *Site) { b.MySQL.IORunning = false }), each(2, func(c *Site) { c.MySQL.IORunning = false }),
		func(s *Snapshot, m *Memory) {
			m.OpenAt = s.Now.Add(-time.Minute)
			m.At("b").FollowedAt, m.At("c").FollowedAt = s.Now.Add(-time.Minute-10*time.Second+1), s.Now.Add(-time.Minute-10*time.Second)
		})
	add("b's applier has stopped", factstest.AtRest, each(1, func(b *Site) { b.MySQL.SQLRunning, b.MySQL.SQLError = false, "broken" }))
	add("b's receiver has stopped", factstest.AtRest, each(1, func(b *Site) { b.MySQL.IORunning, b.MySQL.IOError = false, "refused" }))
	add("b leaves, and two others stay", factstest.AtRest, leaves, func(s *Snapshot, _ *Memory) { d := s.Sites[2]; d.Name = "d"; s.Sites = append(s.Sites, d) })
	add("a leaves, and nobody is near", factstest.AtRest, each(0, func(a *Site) { a.Leaving = "drained" }), each(1, func(b *Site) { b.MySQL.LagSeconds = lag(30) }), each(2, func(c *Site) { c.MySQL.LagSeconds = lag(30) }))
	add("a left", factstest.AtRest, each(0, func(a *Site) { a.Removed = true }))
	add("failing over, b leaves", failingOver, leaves)
	add("there is none, and b's source is not known", factstest.AtRest, func(s *Snapshot, _ *Memory) { s.Status = Durable{} }, readOnly, each(1, func(b *Site) { b.MySQL.ReplicaOf = "" }))
	add("a new group", factstest.AtRest, func(s *Snapshot, _ *Memory) {
		s.Status = Durable{}
		for i := range s.Sites {
			s.Sites[i].Sidecar.Report.Epoch = 0
		}
	}, readOnly, each(0, func(a *Site) { a.Sidecar.Report.Epoch = 0 }))
	add("a has been silent for long, and for one poll", factstest.AtRest, silent(0), long, func(_ *Snapshot, m *Memory) { m.At("a").SilentPolls = 0 })
	add("a is silent for long, b has diverged", factstest.AtRest, silent(0), long, silent(2), func(_ *Snapshot, m *Memory) { m.At("b").Diverged = factstest.Set("B:1") })
	add("there is none, and b is silent", factstest.AtRest, func(s *Snapshot, _ *Memory) { s.Status = Durable{} }, readOnly, silent(1))

	add("failing over", failingOver)
	closed := func(s *Snapshot, m *Memory) {
		m.At("b").Ack, m.At("c").Ack = &Ack{Epoch: 4, Fenced: true}, &Ack{Epoch: 4, Fenced: true}
		m.DrainSince = s.Now
	}
	lateBy := func(s *Snapshot, m *Memory) { m.DrainSince = s.Now.Add(-time.Hour) }
	ended := each(0, func(a *Site) { a.Pod.Ended, a.Pod.UID = true, "pod" })
	confirmed := func(_ *Snapshot, m *Memory) { m.At("a").Confirmed = "pod" }
	add("failing over, a's lease runs", failingOver, closed)
	add("failing over, c is silent", failingOver, silent(2))
	add("failing over, c is silent, late", failingOver, silent(2), lateBy)
	add("failing over, c writes", failingOver, each(2, func(c *Site) { c.MySQL.SuperReadOnly, c.MySQL.ReadOnly = false, false }))
	add("failing over, a outlived it", failingOver, func(s *Snapshot, _ *Memory) { s.Status.Outlived, s.Now = []string{"a"}, s.Now.Add(time.Hour) }, func(_ *Snapshot, m *Memory) { m.At("a").Outlived = true })
	add("failing over, a has ended", failingOver, ended, confirmed)
	add("failing over, a has ended, over the budget", failingOver, ended, confirmed, policy(func(p *Policy) { p.MaxLost = &none }), each(1, func(b *Site) { b.MySQL.Executed = factstest.Set("A:1-999") }), each(2, func(c *Site) { c.MySQL.Executed = factstest.Set("A:1-999") }))
	add("failing over, over the budget, ordered", failingOver, ended, confirmed, policy(func(p *Policy) { p.MaxLost, p.ForceTo = &none, "b" }), each(1, func(b *Site) { b.MySQL.Executed = factstest.Set("A:1-999") }), each(2, func(c *Site) { c.MySQL.Executed = factstest.Set("A:1-999") }))
	add("opening again, over the budget", failingOver, policy(func(p *Policy) { p.MaxLost = &none }), func(s *Snapshot, m *Memory) {
		s.Status.Transition.From = "b"
		m.At("b").Executed = factstest.Set("A:1-1001")
	})
	add("failing over, b does not acknowledge", failingOver, each(1, func(b *Site) { b.Sidecar.Report.Epoch = 3 }))
	add("failing over, b does not acknowledge, late", failingOver, each(1, func(b *Site) { b.Sidecar.Report.Epoch = 3 }), lateBy, silent(2))
	add("failing over, b is silent", failingOver, silent(1))
	add("failing over, b is silent for long", failingOver, silent(1), long, func(s *Snapshot, m *Memory) { m.At("b").IndirectSince = m.At("b").DownSince })
	add("failing over, b has to apply", failingOver, each(1, func(b *Site) { b.MySQL.Retrieved = factstest.Set("A:1-1002") }))
	add("failing over, a is back and writes", failingOver, each(0, func(a *Site) { *a = factstest.AtRest().Sites[0] }))
	add("failing over, nothing is known of a", failingOver, func(s *Snapshot, _ *Memory) { s.Status.Transition.FromExecuted = gtid.Set{} })
	add("the first active site is opened", failingOver, func(s *Snapshot, _ *Memory) {
		s.Status.Transition.From, s.Status.Transition.Kind = "", v1alpha1.FailoverBootstrap
	})
	add("the first one is opened, b over the budget", failingOver, policy(func(p *Policy) { p.MaxLost = &none }), func(s *Snapshot, _ *Memory) {
		s.Status.Transition.From, s.Status.Transition.Kind, s.Status.Transition.FromExecuted = "", v1alpha1.FailoverBootstrap, factstest.Set("A:1-1001")
	})
	opening := func(s *Snapshot, _ *Memory) {
		s.Status.Transition.Step, s.Status.Transition.GatePassedAt, s.Status.Transition.ToExecuted = v1alpha1.TransitionOpening, s.Now, factstest.Set("A:1-1000")
	}
	add("b is being opened", failingOver, opening)
	add("b is open", failingOver, opening, each(1, func(b *Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false }))
	moving := func(s *Snapshot, _ *Memory) {
		s.Status.Transition.Kind, s.Status.Planned = v1alpha1.FailoverPlanned, &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedMoving}
	}
	add("the role moves", failingOver, moving, each(0, func(a *Site) { *a = factstest.Seen("a", "A:1-1000", 4) }))
	add("the role moves, a is silent", failingOver, moving)
	add("the role moves, ordered", failingOver, moving, each(0, func(a *Site) { *a = factstest.Seen("a", "A:1-1000", 4) }), policy(func(p *Policy) { p.ForceTo = "b" }))
	return all
}
