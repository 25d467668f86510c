// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestWhoOutlivedItsLeaseI4: a site that is seen to accept writes after its lease must have ended is fenced by nobody. One whose lease
// may stand is not called that, and only its sidecar takes it back.
func TestWhoOutlivedItsLeaseI4(t *testing.T) {
	const longest = 22 * time.Second
	left := func(d time.Duration) *int64 { ms := d.Milliseconds(); return &ms }
	later := factstest.Start.Add(LeaseEnd(longest) + AskTimeout + time.Millisecond)
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory, *Site)
		want   bool
	}{
		"its sidecar is silent":    {func(*Snapshot, *Memory, *Site) {}, true},
		"its lease may just stand": {func(s *Snapshot, _ *Memory, _ *Site) { s.Now = s.Now.Add(-time.Millisecond) }, false},
		"it is read-only":          {func(_ *Snapshot, _ *Memory, a *Site) { a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = true, true }, false},
		"it does not answer":       {func(_ *Snapshot, _ *Memory, a *Site) { a.MySQL = MySQL{} }, false},
		"the operator has answered it since": {func(s *Snapshot, _ *Memory, _ *Site) {
			s.Renewed = map[string]time.Time{"a": factstest.Start.Add(time.Second)}
		}, false},
		"this operator leads since a short while": {func(s *Snapshot, _ *Memory, _ *Site) { s.LeaderSince = factstest.Start.Add(time.Second) }, false},
		"its pod was started with a longer one":   {func(_ *Snapshot, _ *Memory, a *Site) { a.Pod.Lease = longest + time.Second }, false},
		"it was noted":                            {func(s *Snapshot, _ *Memory, a *Site) { s.Status.Outlived, a.MySQL = []string{"a"}, MySQL{} }, true},
		"it was noted, and a new leader came":     {func(s *Snapshot, _ *Memory, _ *Site) { s.Status.Outlived, s.LeaderSince = []string{"a"}, s.Now }, true},
		"it was noted, and the operator answered": {func(s *Snapshot, _ *Memory, _ *Site) {
			s.Status.Outlived, s.Renewed = []string{"a"}, map[string]time.Time{"a": s.Now}
		}, true},
		"it was found, and that is not durable":  {func(_ *Snapshot, m *Memory, a *Site) { m.At("a").Outlived, a.MySQL = true, MySQL{} }, true},
		"its sidecar says that its lease stands": {func(s *Snapshot, _ *Memory, a *Site) { answers(s, a, left(time.Second)) }, false},
		"the same, noted": {func(s *Snapshot, _ *Memory, a *Site) {
			s.Status.Outlived = []string{"a"}
			answers(s, a, left(time.Second))
		}, false},
		"its sidecar says that it has none":       {func(s *Snapshot, _ *Memory, a *Site) { answers(s, a, left(0)) }, true},
		"its sidecar does not know to say it":     {func(s *Snapshot, _ *Memory, a *Site) { s.Status.Outlived = []string{"a"}; answers(s, a, nil) }, false},
		"its sidecar, of another volume, says so": {func(s *Snapshot, _ *Memory, a *Site) { a.OtherVolume = true; answers(s, a, left(time.Second)) }, true},
		"its sidecar is deaf, and has a lease": {func(s *Snapshot, _ *Memory, a *Site) {
			answers(s, a, left(time.Second))
			a.Sidecar.Answered, a.Sidecar.Deaf = false, true
		}, false},
		"its sidecar is deaf, and has none": {func(s *Snapshot, _ *Memory, a *Site) {
			answers(s, a, left(0))
			a.Sidecar.Answered, a.Sidecar.Deaf = false, true
		}, true},
		"what its sidecar said last is over": {func(_ *Snapshot, m *Memory, _ *Site) { m.At("a").HeardUntil = factstest.Start.Add(longest) }, true},
		"what its sidecar said last may be so yet": {func(_ *Snapshot, m *Memory, _ *Site) {
			m.At("a").HeardUntil = factstest.Start.Add(longest + time.Second)
		}, false},
	} {
		a := factstest.Seen("a", "A:1-9", 4)
		a.Sidecar = Sidecar{}
		a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false
		s, m := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, a, factstest.Seen("b", "A:1-9", 4)), Memory{}
		s.LeaderSince, s.Now = factstest.Start, later
		tc.change(&s, &m, &s.Sites[0])
		d := Decide(s, m)
		if got := slices.Contains(d.Status.Outlived, "a"); got != tc.want || d.Memory.At("a").Outlived != tc.want {
			t.Errorf("I4, I9: %s: outlived its lease: %t, want %t", name, got, tc.want)
		}
		if changed := tc.want != slices.Contains(s.Status.Outlived, "a"); changed && !d.Persist {
			t.Errorf("I9: %s: is not made durable", name)
		}
		if slices.Contains(d.Status.Outlived, "b") {
			t.Errorf("%s: b was never open", name)
		}
	}
}

// answers has the sidecar of a site report, with what is left of its lease.
func answers(s *Snapshot, a *Site, left *int64) {
	a.Sidecar = Sidecar{Answered: true, At: s.Now}
	a.Sidecar.Report.Epoch, a.Sidecar.Report.LeaseMillis = 4, left
}

// TestTimeProvesNothingOfWhoOutlivedItsLeaseI4: by noted facts and by what is seen after the gate could have passed; proof and a
// person's order count all the same.
func TestTimeProvesNothingOfWhoOutlivedItsLeaseI4(t *testing.T) {
	ready := LeaseEnd(22 * time.Second)
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		pass   bool
	}{
		"its lease has run out": {func(*Snapshot, *Memory) {}, true},
		"it outlived it once":   {func(_ *Snapshot, m *Memory) { m.At("a").Outlived = true }, false},
		"another one did":       {func(_ *Snapshot, m *Memory) { m.At("c").Outlived = true }, true},
		"it was open when it must be closed": {func(_ *Snapshot, m *Memory) {
			m.At("a").WritableAt = factstest.Start.Add(ready + time.Millisecond)
		}, false},
		"it was open as long as it may be": {func(_ *Snapshot, m *Memory) { m.At("a").WritableAt = factstest.Start.Add(ready) }, true},
		"its sidecar had a lease all the time": {func(_ *Snapshot, m *Memory) {
			m.At("a").WritableAt = factstest.Start.Add(ready + time.Millisecond)
			m.At("a").HeardUntil = factstest.Start.Add(ready)
		}, true},
		"it outlived it, and is out of service": {func(s *Snapshot, m *Memory) {
			m.At("a").Outlived, s.Sites[0].Pod.OutOfService = true, true
		}, true},
		"it outlived it, and a person orders": {func(s *Snapshot, m *Memory) {
			m.At("a").Outlived, s.Policy.ForceTo = true, "b"
		}, true},
	} {
		s, m := cutOff()
		s.Now = factstest.Start.Add(time.Minute)
		tc.change(&s, &m)
		if g := AskGate(promotion.WithOrder(s), m); g.Passed != tc.pass {
			t.Errorf("I4: %s: passed %t, want %t: %+v", name, g.Passed, tc.pass, g)
		}
	}
}

// TestOutlivedSitesAreWrittenInOneOrderI9: else every second status would differ from the one before, and be written for nothing.
func TestOutlivedSitesAreWrittenInOneOrderI9(t *testing.T) {
	want := []string{"a", "b", "c", "d", "e", "f"}
	for range 20 { // the order of a map is another one each time
		var m Memory
		for _, name := range want {
			m.At(name).Outlived = true
		}
		s := Snapshot{Status: Durable{Outlived: want}}
		if d := (Decision{Memory: m}).noteOutlived(s); d.Persist || !slices.Equal(d.Status.Outlived, want) {
			t.Fatalf("I9: %v, persisted %t", d.Status.Outlived, d.Persist)
		}
	}
}
