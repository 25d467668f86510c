// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

const someSet = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-9"

// answering is a site that answers both witnesses, fenced, in one pod, on its own volume.
func answering() Site {
	s := Site{Name: "a", Provisioned: true, Noted: true, Runs: []Run{{UID: "pod"}}, Pod: Pod{UID: "pod"}}
	s.Sidecar = Sidecar{Answered: true, Report: wire.Report{Answered: true}}
	s.MySQL = MySQL{Direct: true, ReadOnly: true, SuperReadOnly: true, Executed: gtid.MustParse(someSet), ReplicaOf: "b", IORunning: true, SQLRunning: true}
	return s
}

// TestWhatIsSeenOfASite: each predicate changes its answer with each of the facts that it rests on, and with no other one.
func TestWhatIsSeenOfASite(t *testing.T) {
	type answers struct{ writable, fenced, reachable, unusable, follows, whole, gone, writes bool }
	usual := answers{fenced: true, reachable: true, follows: true, whole: true}
	with := func(change func(*answers)) answers { a := usual; change(&a); return a }
	open := func(s *Site) { s.MySQL.ReadOnly, s.MySQL.SuperReadOnly = false, false }
	writes := with(func(a *answers) { a.writable, a.fenced, a.writes = true, false, true })
	for name, tc := range map[string]struct {
		change func(*Site)
		want   answers
	}{
		"it is fenced":               {func(*Site) {}, usual},
		"it is open":                 {open, writes},
		"only read_only is on":       {func(s *Site) { s.MySQL.SuperReadOnly = false }, usual},
		"only super_read_only is on": {func(s *Site) { s.MySQL.ReadOnly = false }, usual},
		"its sidecar says so":        {func(s *Site) { s.Sidecar.Report.Writable = true }, writes},
		"a silent sidecar said so":   {func(s *Site) { s.Sidecar.Answered, s.Sidecar.Report.Writable = false, true }, with(func(a *answers) { a.unusable = true })},
		"a silent MySQL said so":     {func(s *Site) { open(s); s.MySQL.Direct = false }, with(func(a *answers) { a.whole = false })},
		"its sidecar had no answer": {func(s *Site) { s.Sidecar.Report = wire.Report{Writable: true}; s.MySQL.Direct = false },
			with(func(a *answers) { a.fenced, a.unusable, a.whole = false, true, false })},
		"open, without a sidecar":   {func(s *Site) { open(s); s.Sidecar.Answered = false }, writes},
		"nobody answers":            {func(s *Site) { s.Sidecar.Answered, s.MySQL.Direct = false, false }, with(func(a *answers) { a.fenced, a.reachable, a.unusable, a.whole = false, false, true, false })},
		"open, and rotated":         {func(s *Site) { open(s); s.Busy = WorkRotation }, with(func(a *answers) { a.writable, a.fenced = true, false })},
		"it is cloned":              {func(s *Site) { s.Busy = WorkClone }, with(func(a *answers) { a.whole = false })},
		"it clones":                 {func(s *Site) { s.MySQL.Cloning = true }, with(func(a *answers) { a.whole = false })},
		"it is half cloned":         {func(s *Site) { s.MySQL.HalfCloned = true }, with(func(a *answers) { a.whole = false })},
		"no plugin tells of clones": {func(s *Site) { s.MySQL.NoClone = true }, with(func(a *answers) { a.whole = false })},
		"it has nothing":            {func(s *Site) { s.MySQL.Executed = gtid.Set{} }, with(func(a *answers) { a.whole = false })},
		"its volume is not noted":   {func(s *Site) { s.Noted = false }, with(func(a *answers) { a.whole = false })},
		"it follows another one":    {func(s *Site) { s.MySQL.ReplicaOf = "c" }, with(func(a *answers) { a.follows = false })},
		"it receives nothing":       {func(s *Site) { s.MySQL.IORunning = false }, with(func(a *answers) { a.follows = false })},
		"it applies nothing":        {func(s *Site) { s.MySQL.SQLRunning = false }, with(func(a *answers) { a.follows = false })},
		"it applies late":           {func(s *Site) { s.MySQL.Delayed = true }, with(func(a *answers) { a.follows = false })},
		"its pod has ended":         {func(s *Site) { s.Pod.Ended = true }, with(func(a *answers) { a.gone = true })},
		"and it is on another volume": {func(s *Site) { s.Pod.Ended, s.OtherVolume = true, true },
			usual},
		"and another one may run":     {func(s *Site) { s.Pod.Ended, s.Runs = true, append(s.Runs, Run{UID: "old"}) }, usual},
		"its node is down":            {func(s *Site) { s.Pod.OutOfService, s.Runs[0].Idle = true, true }, with(func(a *answers) { a.gone = true })},
		"and it may run all the same": {func(s *Site) { s.Pod.OutOfService = true }, usual},
		"nothing of it runs just now": {func(s *Site) { s.Runs[0].Idle = true }, usual},
	} {
		s := answering()
		tc.change(&s)
		got := answers{s.Writable(), s.Fenced(), s.Reachable(), s.Unusable(), s.Follows(Site{Name: "b"}), s.Whole(), s.Gone(), s.Writes()}
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestWhoNeverRanI4: each sign of a pod, alone, makes a site one that may vouch.
func TestWhoNeverRanI4(t *testing.T) {
	for name, change := range map[string]func(*Site){
		"":                    func(*Site) {},
		"it came to a node":   func(s *Site) { s.Pod.Unplaced = false },
		"somebody may ask it": func(s *Site) { s.Listed = true },
		"it has data":         func(s *Site) { s.Provisioned = true },
		"its sidecar answers": func(s *Site) { s.Sidecar.Answered = true },
		"a pod of it may run": func(s *Site) { s.Runs = []Run{{UID: "pod"}} },
	} {
		s := Site{Pod: Pod{Unplaced: true}}
		if change(&s); s.NeverRan() != (name == "") {
			t.Errorf("I4: %s: never ran %t", name, s.NeverRan())
		}
	}
}

// TestWhichRunsAreLeftI1I2: a word of one pod is none of another.
func TestWhichRunsAreLeftI1I2(t *testing.T) {
	s := Site{Runs: []Run{{UID: "new"}, {UID: "old", Closed: true}}}
	if r, more := s.Beside("new"); !more || r.UID != "old" || s.Only("new") {
		t.Errorf("I1: beside the new one: %+v", r)
	}
	if r, more := s.WritesBeside("new"); more || !s.ShutBut("new") {
		t.Errorf("I2: what may write beside the new one: %+v", r)
	}
	if r, more := s.WritesBeside("old"); !more || r.UID != "new" || s.ShutBut("old") {
		t.Errorf("I2: what may write beside the old one: %+v", r)
	}
}

// TestWhatStatusKeepsOfRunsI9: not those that never began, nor those that have ended.
func TestWhatStatusKeepsOfRunsI9(t *testing.T) {
	n := Runs{Of: map[string][]Run{"a": {{UID: "runs", Elsewhere: true, Closed: true}, {UID: "ended", Ended: true}, {UID: "begins", Idle: true}, {UID: "idles", Idle: true, Volume: "v"}}, "b": {{UID: "gone", Ended: true}}}}
	kept := n.Kept()
	if len(kept) != 1 || len(kept["a"]) != 2 || kept["a"][0] != (Run{UID: "runs", Closed: true}) || kept["a"][1] != (Run{UID: "idles", Volume: "v"}) {
		t.Errorf("I9: %+v", kept)
	}
	if (Runs{}).Kept() != nil {
		t.Error("nothing is not nil")
	}
	d := Durable{ActiveSite: "a", Runs: kept}
	if d.Noted("a", "runs") || !d.Noted("a", "idles") || d.Noted("a", "other") {
		t.Error("I9: a closed run of the active site passes for one that is noted")
	}
	if d.ActiveSite = "b"; !d.Noted("a", "runs") {
		t.Error("I9: a closed run of another site is not noted")
	}
	if n.Open(); n.Of["a"][0].Closed {
		t.Error("I9: it is still closed")
	}
}

// TestWhatATransitionDoes: a site that is opened again is no other one.
func TestWhatATransitionDoes(t *testing.T) {
	for _, tc := range []struct {
		t        Transition
		want     Change
		replaces bool
	}{
		{Transition{To: "a", Kind: v1alpha1.FailoverBootstrap}, ChangeFirst, false},
		{Transition{From: "a", To: "a", Kind: v1alpha1.FailoverPlanned}, ChangeReopen, false},
		{Transition{From: "a", To: "a", Kind: v1alpha1.FailoverEmergency}, ChangeReopen, false},
		{Transition{From: "a", To: "b", Kind: v1alpha1.FailoverPlanned}, ChangeMove, true},
		{Transition{From: "a", To: "b", Kind: v1alpha1.FailoverEmergency}, ChangeTakeover, true},
		{Transition{From: "a", To: "b", Kind: v1alpha1.FailoverForced}, ChangeTakeover, true},
	} {
		if tc.t.Change() != tc.want || tc.t.Replaces() != tc.replaces {
			t.Errorf("%s %s>%s: %s, replaces %t", tc.t.Kind, tc.t.From, tc.t.To, tc.t.Change(), tc.t.Replaces())
		}
	}
	stalled, failed, down := Transition{Reason: ReasonDiskStalled}, Transition{Reason: ReasonDiskFailed}, Transition{Reason: v1alpha1.ReasonActiveSiteDown}
	if !stalled.OverDisk() || !failed.OverDisk() || down.OverDisk() {
		t.Error("which changes are over a volume")
	}
}

// TestHowLongAMoveIsUrgent: a planned one, and the way back from it.
func TestHowLongAMoveIsUrgent(t *testing.T) {
	now, p := time.Unix(1000, 0), Policy{PlannedPauseTimeout: 5 * time.Second}
	move := Transition{Kind: v1alpha1.FailoverPlanned, StartedAt: now.Add(-10*time.Second + 1)}
	if !move.Urgent(now, p) || move.Urgent(now.Add(1), p) || (*Transition)(nil).Urgent(now, p) {
		t.Error("for twice as long as writes may be kept out")
	}
	if move.StartedAt = now.Add(1); move.Urgent(now, p) {
		t.Error("one that an earlier leader began, whose clock was ahead, is urgent")
	}
	if move.StartedAt = now; !move.Urgent(now, p) {
		t.Error("one that begins now is not urgent")
	}
	if move.Kind = v1alpha1.FailoverEmergency; move.Urgent(now, p) {
		t.Error("no other change is")
	}
}

// TestASnapshotOfAGroup: who is in it, and whether a person has paused it.
func TestASnapshotOfAGroup(t *testing.T) {
	s := Snapshot{Now: time.Unix(1000, 0), Sites: []Site{{Name: "a"}, {Name: "b", Priority: 7}}}
	if b, known := s.Site("b"); !known || b.Priority != 7 {
		t.Errorf("b: %+v", b)
	}
	if c, known := s.Site("c"); known || c.Name != "" {
		t.Errorf("c: %+v", c)
	}
	if s.Policy.PausedUntil = s.Now; s.Paused() {
		t.Error("the pause is over")
	}
	if s.Policy.PausedUntil = s.Now.Add(1); !s.Paused() {
		t.Error("it is paused")
	}
	if over := (Planned{Phase: v1alpha1.PlannedReverted}); !over.Over() || (&Planned{Phase: v1alpha1.PlannedWaiting}).Over() || (&Planned{Phase: v1alpha1.PlannedMoving}).Over() {
		t.Error("which planned failovers are over")
	}
}

// TestACommandForPeople: what is not known is left out, or has a word for it.
func TestACommandForPeople(t *testing.T) {
	for want, got := range map[string]string{
		"kubectl mfg status GROUP":                   Group{}.Command("status", "", ""),
		"kubectl mfg mysql orders east -n shop -e x": Group{Namespace: "shop", Name: "orders"}.Command("mysql", "east", "-e x"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestAMemoryIsNotChangedBehindItsReader: whoever explains the last decision reads the old one while the next poll is taken.
func TestAMemoryIsNotChangedBehindItsReader(t *testing.T) {
	var m Memory
	if m.Of("a").Held != nil || m.Sites != nil {
		t.Error("to ask is to remember")
	}
	m.At("a").SilentPolls, m.At("b").SilentPolls = 1, 2
	if m.At("a").SilentPolls++; m.Of("a").SilentPolls != 2 {
		t.Errorf("a: %+v", m.Of("a"))
	}
	now := m.With("a", func(is *SiteMemory) { is.UUID = "a" }).With("c", func(is *SiteMemory) { is.UUID = "c" })
	if was := m.Of("a"); was.UUID != "" || len(m.Sites) != 2 {
		t.Errorf("the old one: %+v, %d sites", was, len(m.Sites))
	}
	if now.Of("a").UUID != "a" || now.Of("a").SilentPolls != 2 || now.Of("b").SilentPolls != 2 || now.Of("c").UUID != "c" {
		t.Errorf("the new one: %+v %+v %+v", now.Of("a"), now.Of("b"), now.Of("c"))
	}
}

// TestAnOrderGoesElsewhere: only if there is one that can be followed, and to another site.
func TestAnOrderGoesElsewhere(t *testing.T) {
	for _, tc := range []struct {
		to, site string
		want     bool
	}{{"b", "a", true}, {"a", "a", false}, {"", "a", false}, {"", "", false}, {"b", "", true}} {
		if got := (Order{To: tc.to, Accepted: true}).Elsewhere(tc.site); got != tc.want {
			t.Errorf("to %q, away from %q: %t", tc.to, tc.site, got)
		}
	}
}

// TestHowLongAgoSomethingWasNotedI9: what lies ahead was noted by an earlier leader, so before this one began.
func TestHowLongAgoSomethingWasNotedI9(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		at, since time.Time
		age, led  time.Duration
	}{
		"by this leader":              {now.Add(-time.Second), now.Add(-time.Minute), time.Second, time.Second},
		"by an earlier one":           {now.Add(-time.Hour), now.Add(-time.Minute), time.Hour, time.Minute},
		"by one whose clock is ahead": {now.Add(time.Hour), now.Add(-time.Minute), time.Minute, time.Minute},
		"just now":                    {now, now.Add(-time.Minute), 0, 0},
		"by one ahead, and this too":  {now.Add(time.Hour), now.Add(time.Second), 0, 0},
	} {
		s := Snapshot{Now: now, LeaderSince: tc.since}
		if age, led := s.Age(tc.at), s.Led(tc.at); age != tc.age || led != tc.led {
			t.Errorf("I9: %s: %s ago, led for %s", name, age, led)
		}
	}
}
