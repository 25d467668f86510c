// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Every fact without which a replica is not one that gets nothing from its master.
func TestWhoIsApart(t *testing.T) {
	for name, change := range map[string]func(*Pod){
		"":        func(*Pod) {},
		"silent":  func(p *Pod) { p.Reachable = false },
		"master":  func(p *Pod) { p.Role = v1alpha1.CacheMaster },
		"linked":  func(p *Pod) { p.Linked = true },
		"syncing": func(p *Pod) { p.Syncing = true },
		"loading": func(p *Pod) { p.Loading = true },
		"another": func(p *Pod) { p.Following = "west" },
	} {
		p := Pod{Reachable: true, Role: v1alpha1.CacheReplica, Following: "east"}
		if change(&p); p.Apart("east") != (name == "") {
			t.Errorf("%s: apart %t", name, p.Apart("east"))
		}
	}
}

// between is a move from east to west, and the caches of both.
func between(change func(s *Snapshot, t *Transition, from, to *Pod)) (Snapshot, Transition, Pod, Pod) {
	t := Transition{Kind: v1alpha1.CacheMoveOnly, Method: v1alpha1.CacheByTakeOver, From: "east", To: "west"}
	s := Snapshot{Status: Durable{ActiveSite: "east", ActiveRun: "e1"}}
	from, to := Pod{Site: "east", Reachable: true, Role: v1alpha1.CacheReplica, Run: "e1"}, Pod{Site: "west", Reachable: true, Role: v1alpha1.CacheMaster, Run: "w1"}
	change(&s, &t, &from, &to)
	s.Pods, s.Status.Transition = []Pod{from, to}, &t
	return s, t, from, to
}

// A target that no other cache made a master has nothing of what the old one holds: it takes over by promotion, which says so.
func TestWhoIsAnotherMaster(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, t *Transition, from, to *Pod)
		want   bool
	}{
		"a master of its own":               {func(*Snapshot, *Transition, *Pod, *Pod) {}, true},
		"it is silent":                      {func(_ *Snapshot, _ *Transition, _, to *Pod) { to.Reachable = false }, false},
		"it is a replica":                   {func(_ *Snapshot, _ *Transition, _, to *Pod) { to.Role = v1alpha1.CacheReplica }, false},
		"it is the active one":              {func(s *Snapshot, _ *Transition, _, _ *Pod) { s.Status.ActiveSite, s.Status.ActiveRun = "west", "w1" }, false},
		"it is, and began again":            {func(s *Snapshot, _ *Transition, _, _ *Pod) { s.Status.ActiveSite, s.Status.ActiveRun = "west", "w0" }, true},
		"another has the run of the active": {func(s *Snapshot, _ *Transition, _, _ *Pod) { s.Status.ActiveRun = "w1" }, true},
		"it is to be the first":             {func(_ *Snapshot, t *Transition, _, _ *Pod) { t.Kind = v1alpha1.CacheMoveFirst }, false},
		"it stays where it is":              {func(_ *Snapshot, t *Transition, _, _ *Pod) { t.From = "west" }, false},
		"the old one follows it":            {func(_ *Snapshot, _ *Transition, from, _ *Pod) { from.Following = "west" }, false},
	} {
		s, move, _, _ := between(tc.change)
		if got := isAnotherMaster(s, move); got != tc.want {
			t.Errorf("%s: another master %t", name, got)
		}
	}
}

// Nobody hands over to a target that was silent and comes back as a master.
func TestWhoIsAStranger(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, t *Transition, from, to *Pod)
		want   bool
	}{
		"it was silent, and is a master": {func(*Snapshot, *Transition, *Pod, *Pod) {}, true},
		"it was known":                   {func(_ *Snapshot, t *Transition, _, _ *Pod) { t.ToRun = "w1" }, false},
		"by promotion":                   {func(_ *Snapshot, t *Transition, _, _ *Pod) { t.Method = v1alpha1.CacheByPromotion }, false},
		"it is a replica":                {func(_ *Snapshot, _ *Transition, _, to *Pod) { to.Role = v1alpha1.CacheReplica }, false},
		"it is the same":                 {func(_ *Snapshot, _ *Transition, from, _ *Pod) { from.Site = "west" }, false},
	} {
		s, _, from, to := between(tc.change)
		if got := isStranger(s, from, to); got != tc.want {
			t.Errorf("%s: a stranger %t", name, got)
		}
	}
}

// A master whose process ended before it handed over has nothing to hand over any more.
func TestWhichMasterBeganAgain(t *testing.T) {
	again := func(from *Pod) { from.Run = "e2" }
	for name, tc := range map[string]struct {
		change func(s *Snapshot, t *Transition, from, to *Pod)
		want   bool
	}{
		"it did":                   {func(_ *Snapshot, _ *Transition, from, _ *Pod) { again(from) }, true},
		"it did not":               {func(*Snapshot, *Transition, *Pod, *Pod) {}, false},
		"it is silent":             {func(_ *Snapshot, _ *Transition, from, _ *Pod) { again(from); from.Reachable = false }, false},
		"its process is not known": {func(s *Snapshot, _ *Transition, from, _ *Pod) { again(from); s.Status.ActiveRun = "" }, false},
		"it is not the active one": {func(s *Snapshot, _ *Transition, from, _ *Pod) { again(from); s.Status.ActiveSite = "west" }, false},
		"it is to take the role":   {func(_ *Snapshot, t *Transition, from, _ *Pod) { again(from); t.To = "east" }, false},
		"nothing is handed over":   {func(_ *Snapshot, t *Transition, from, _ *Pod) { again(from); t.Method = v1alpha1.CacheByPromotion }, false},
	} {
		s, _, from, _ := between(tc.change)
		if got := masterBeganAgain(s, from); got != tc.want {
			t.Errorf("%s: began again %t", name, got)
		}
	}
}

// A master is waited for only where it may hold the only copy.
func TestHowLongAMasterIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(active, best *Pod)
		want   time.Duration
	}{
		"it is silent":                    {func(*Pod, *Pod) {}, emptyPatience},
		"it loads":                        {func(active, _ *Pod) { active.Loading = true }, loadingPatience},
		"it loads, and answers":           {func(active, _ *Pod) { active.Loading, active.Reachable = true, true }, loadingPatience},
		"it answers":                      {func(active, _ *Pod) { active.Reachable = true }, 0},
		"it has no pod":                   {func(active, _ *Pod) { active.Exists = false }, 0},
		"the other has data":              {func(_, best *Pod) { best.Keys = 1 }, 0},
		"it is the best, and without any": {func(_, best *Pod) { best.Site = "east" }, 0},
	} {
		active, best := Pod{Site: "east", Exists: true}, Pod{Site: "west", Exists: true, Reachable: true}
		tc.change(&active, &best)
		if got := patienceForNone(active, best); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// decided is a decision that looks no further once it has begun a move.
func decided(s Snapshot) Decision { return Decision{Status: s.Status, begun: mostBegun} }

// A move that is given up goes back to the old master, and says so if clients have written to a process of the target that ended.
func TestWhatIsSaidOfAMoveThatIsGivenUp(t *testing.T) {
	again := func(t *Transition, to *Pod) { to.Traffic, t.ToRun = true, "w0" }
	for name, tc := range map[string]struct {
		change func(s *Snapshot, t *Transition, from, to *Pod)
		want   v1alpha1.Reason
		method v1alpha1.CacheMethod
	}{
		"its target began again":      {func(_ *Snapshot, t *Transition, _, to *Pod) { again(t, to) }, v1alpha1.ReasonCacheTargetRestarted, v1alpha1.CacheByTakeOver},
		"no client has written to it": {func(_ *Snapshot, t *Transition, _, to *Pod) { again(t, to); to.Traffic = false }, "", v1alpha1.CacheByTakeOver},
		"it is silent":                {func(_ *Snapshot, t *Transition, _, to *Pod) { again(t, to); to.Reachable = false }, "", v1alpha1.CacheByTakeOver},
		"its process was not known":   {func(_ *Snapshot, t *Transition, _, to *Pod) { again(t, to); t.ToRun = "" }, "", v1alpha1.CacheByTakeOver},
		"it is the same process":      {func(_ *Snapshot, t *Transition, _, to *Pod) { again(t, to); t.ToRun = "w1" }, "", v1alpha1.CacheByTakeOver},
		"both hand over":              {func(_ *Snapshot, _ *Transition, from, _ *Pod) { from.FailingOver = true }, "", v1alpha1.CacheByPromotion},
		"the old one, and to a replica": {func(_ *Snapshot, _ *Transition, from, to *Pod) {
			from.FailingOver, to.Role = true, v1alpha1.CacheReplica
		}, "", v1alpha1.CacheByTakeOver},
	} {
		s, _, from, to := between(tc.change)
		got := decided(s).giveUp(s, from, to, "why").Status.Transition
		if got == nil || got.To != "east" || got.Reason != tc.want || got.Method != tc.method {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A master that let go and is made the master again has lost nothing, unless it was not the one that clients wrote to.
func TestWhatIsSaidOfAMasterThatHung(t *testing.T) {
	for name, tc := range map[string]struct {
		active string
		had    v1alpha1.Reason
		want   v1alpha1.Reason
	}{
		"it was the active one":          {"east", "", ""},
		"it was not":                     {"west", "", v1alpha1.ReasonCacheMasterSilent},
		"it was not, and that was known": {"west", v1alpha1.ReasonCacheMasterRestarted, v1alpha1.ReasonCacheMasterRestarted},
	} {
		s, _, from, to := between(func(s *Snapshot, t *Transition, from, to *Pod) {
			s.Status.ActiveSite, t.Reason, from.FailingOver, from.Offset, to.Role = tc.active, tc.had, true, 9, v1alpha1.CacheReplica
		})
		s.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		d := decided(s)
		d.Memory.HungSince = s.Now.Add(-hungPatience)
		if got := hung(s, d, from, to).Status.Transition; got == nil || got.To != "east" || got.Reason != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A target that was silent when the move began, and follows by now, is known from here on: it is no stranger once it is the master.
func TestATargetThatFollowsIsKnown(t *testing.T) {
	s, move, from, to := between(func(s *Snapshot, t *Transition, from, to *Pod) {
		from.Role, to.Role, to.Linked, to.Following = v1alpha1.CacheMaster, v1alpha1.CacheReplica, true, "east"
		s.Now = t.StartedAt.Time
	})
	d := handOver(s, decided(s), from, to)
	if !d.Persist || d.Status.Transition.ToRun != "w1" || move.ToRun != "" {
		t.Errorf("%+v", d.Status.Transition)
	}
}

// A master that was promoted in a move which is not over yet, and then misses an answer, keeps the role for a while: the old one lacks what
// clients have written since. If it stays silent, the record says what that cost.
func TestASilentMasterOfAMoveKeepsTheRoleForAWhile(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for name, tc := range map[string]struct {
		change func(t *Transition, to *Pod)
		silent time.Duration
		waits  bool
		why    v1alpha1.Reason
	}{
		"a moment":               {func(*Transition, *Pod) {}, time.Second, true, ""},
		"too long":               {func(*Transition, *Pod) {}, awayPatience, false, v1alpha1.ReasonCacheMasterSilent},
		"it has no pod":          {func(_ *Transition, to *Pod) { to.Exists = false }, time.Second, false, v1alpha1.ReasonCacheMasterSilent},
		"no client wrote to it":  {func(_ *Transition, to *Pod) { to.Traffic = false }, time.Second, false, ""},
		"it was not promoted":    {func(t *Transition, _ *Pod) { t.Method = v1alpha1.CacheByTakeOver }, time.Second, false, ""},
		"it answers, and is not": {func(_ *Transition, to *Pod) { to.Reachable, to.Role = true, v1alpha1.CacheReplica }, time.Second, false, ""},
	} {
		s, move, from, _ := between(func(s *Snapshot, t *Transition, from, to *Pod) {
			s.Now, from.Role, from.Exists = now, v1alpha1.CacheMaster, true
			t.Method, to.Reachable, to.Exists, to.Traffic = v1alpha1.CacheByPromotion, false, true, true
			t.StartedAt.Time = now.Add(-time.Hour)
			tc.change(t, to)
		})
		d := decided(s)
		d.Memory = Memory{Sites: map[string]SiteMemory{"west": {SilentSince: now.Add(-tc.silent)}}}
		got := moving(s, d)
		after := got.Status.Transition
		if waits := !got.Persist && len(got.Actions) == 0 && after.To == "west"; waits != tc.waits {
			t.Errorf("%s: waits %t: %+v, %v", name, waits, after, got.Actions)
		}
		if !tc.waits && after.To == move.From && from.Site == after.To && after.Reason != tc.why {
			t.Errorf("%s: reason %q, want %q", name, after.Reason, tc.why)
		}
	}
}

// An old master that cannot follow the new one does not keep a move open for ever.
func TestAMoveEndsBesideAnOldMasterThatCannotFollow(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for age, follows := range map[time.Duration]bool{cutMost: true, cutMost + time.Second: false} {
		s, _, from, to := between(func(s *Snapshot, t *Transition, from, to *Pod) {
			s.Now, t.StartedAt.Time, t.Method = now, now.Add(-age), v1alpha1.CacheByPromotion
			from.Role, from.CutAt, from.RoleLabel = v1alpha1.CacheMaster, now, v1alpha1.CacheReplica
			to.Traffic, to.RoleLabel, to.Exists = true, v1alpha1.CacheMaster, true
		})
		s.Route = ByLabels
		d := settle(s, decided(s), from, to)
		if open := d.Status.Transition != nil; open != follows {
			t.Errorf("after %s: open %t: %v", age, open, d.Actions)
		}
	}
}
