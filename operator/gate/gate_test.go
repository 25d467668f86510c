// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/sidecar/watchdog"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// witness is one thing that proves of one pod that it accepts no commits; a pod without a name is of none.
type witness struct {
	valid bool
	pod   string
}

// witnesses are all that there are of a site.
func witnesses(q Question, x Site) []witness {
	back := x.ReadBack
	return []witness{
		{x.Ack.Fenced && x.Ack.Epoch >= q.Epoch, x.Ack.PodUID},
		{!back.At.IsZero() && back.Epoch >= q.Epoch && back.PodUID == x.Confirmed && back.At.Sub(x.Permitted) >= OpenValidity, back.PodUID},
		{x.PodEnded && x.Pod == x.Confirmed, x.Pod},
		{x.OutOfService, ""},
	}
}

// speaksFor is true if what is said of a pod is said of an incarnation.
func speaksFor(pod string, r Run) bool { return r.UID == pod && !r.Elsewhere }

// every asks every incarnation.
func every(runs Runs, holds func(Run) bool) bool {
	for _, r := range runs {
		if !holds(r) {
			return false
		}
	}
	return true
}

// isFenced is the definition: one witness, and every incarnation of which it does not speak is closed or does not run.
func isFenced(q Question, x Site) bool {
	return slices.ContainsFunc(witnesses(q, x), func(w witness) bool {
		return w.valid && every(x.Runs, func(r Run) bool { return speaksFor(w.pod, r) || r.Closed || r.Idle })
	})
}

// isMute is the definition of a site that renews nobody's lease from some moment on: no incarnation of it may.
func isMute(q Question, x Site, other string) (bool, time.Time) {
	alone := func(pod string) bool {
		return every(x.Runs, func(r Run) bool { return speaksFor(pod, r) || r.Idle })
	}
	switch {
	case x.Acked && x.Ack.Epoch >= q.Epoch && alone(x.Ack.PodUID):
		return true, latest(x.Ack.LastVouch[other], x.EndedAt)
	case !x.OtherVolume && (x.PodEnded && alone(x.Pod) || x.OutOfService && alone("")):
		return true, x.GoneSince
	}
	return x.Unasked || x.NeverRan && !x.Acked, time.Time{}
}

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }

// isLeaseOver is the definition of a lease that has run out: nobody renews it any more, and it is as long ago as it may be that somebody did.
func isLeaseOver(q Question) (over, blocked bool) {
	last, outlived := q.Old.Answered, q.Old.Outlived
	for _, x := range q.Sites {
		if x.Name == q.Old.Name {
			continue
		}
		mute, until := isMute(q, x, q.Old.Name)
		blocked = blocked || !mute
		last = latest(last, until)
	}
	end := last.Add(q.Old.Lease + Margin(q.Old.Lease))
	outlived = outlived || q.Old.WritableAt.After(end) && q.Old.WritableAt.After(q.Old.HeardUntil.Add(Margin(q.Old.Lease)))
	return !q.Now.Before(end), blocked || outlived
}

// passes is the definition of the gate with an old active site.
func passes(q Question) bool {
	if slices.ContainsFunc(q.Sites, func(x Site) bool { return x.Name != q.Target && x.Writes }) {
		return false
	}
	over, blocked := isLeaseOver(q)
	return isFenced(q, q.Old) || over && (!blocked || q.Ordered)
}

// passesFirst is the definition of the gate without one: whoever may be open is fenced, or ordered away once its lease is over.
func passesFirst(q Question) bool {
	shut, over := true, true
	for _, x := range q.Sites {
		if x.Name != q.Target && x.Writes {
			return false
		}
		but := func(pod string, counts bool) bool {
			return every(x.Runs, func(r Run) bool { return speaksFor(pod, r) || r.Idle || counts && r.Closed })
		}
		gone := !x.OtherVolume && (x.PodEnded && but(x.Pod, false) || x.OutOfService && but("", false))
		if x.Name == q.Target && but(x.Pod, true) || x.Ack.Fenced && x.Ack.Epoch >= q.Epoch && but(x.Ack.PodUID, false) || gone || x.NeverActive {
			continue
		}
		of := q
		of.Old = x
		ended, _ := isLeaseOver(of)
		shut, over = false, over && ended
	}
	return shut || over && q.Ordered
}

func drawTime(t *rapid.T, what string) time.Time {
	ago := rapid.SampledFrom([]time.Duration{time.Hour, 23900 * time.Millisecond, 22 * time.Second, 4 * time.Second, 3999 * time.Millisecond, 0, -time.Second}).Draw(t, what)
	if ago == time.Hour && rapid.Bool().Draw(t, what+" never") {
		return time.Time{}
	}
	return start.Add(-ago)
}

func drawRuns(t *rapid.T, name string) (all Runs) {
	for _, pod := range rapid.SliceOfN(rapid.SampledFrom([]string{"new", "new", "old", "older"}), 0, 3).Draw(t, name+" runs") {
		flag := func(what string) bool { return rapid.IntRange(0, 2).Draw(t, name+pod+what) == 0 }
		all = append(all, Run{UID: pod, Idle: flag("idle"), Closed: flag("closed"), Elsewhere: flag("elsewhere") && flag("far")})
	}
	return all
}

func drawSite(t *rapid.T, name string) Site {
	rare := func(what string) bool { return rapid.IntRange(0, 4).Draw(t, name+what) == 0 }
	pod := func(what string) string {
		return rapid.SampledFrom([]string{"new", "new", "old", ""}).Draw(t, name+what)
	}
	epoch := func(what string) int64 { return rapid.Int64Range(3, 5).Draw(t, name+what) }
	x := Site{Name: name, Runs: drawRuns(t, name), Writes: rare("writes") && rare("much"), NeverActive: rare("never active"), NeverRan: rare("never ran"),
		Unasked: rare("unasked"), OtherVolume: rare("other volume"), Pod: pod("pod"), PodEnded: rare("ended"), OutOfService: rare("out of service"),
		Confirmed: pod("confirmed"), Acked: !rare("silent"), Permitted: drawTime(t, name+"permitted"), Answered: drawTime(t, name+"answered"),
		GoneSince: drawTime(t, name+"gone"), EndedAt: drawTime(t, name+"run ended"), Lease: 22 * time.Second, Outlived: rare("outlived"),
		WritableAt: drawTime(t, name+"writable"), HeardUntil: drawTime(t, name+"heard")}
	if x.Acked {
		x.Ack = Ack{Epoch: epoch("ack"), PodUID: pod("acked"), Fenced: rapid.Bool().Draw(t, name+"fenced"), LastVouch: map[string]time.Time{}}
		for _, other := range []string{"a", "b", "c"} {
			x.Ack.LastVouch[other] = drawTime(t, name+"vouched "+other)
		}
	}
	if rare("read back") {
		x.ReadBack = ReadBack{Epoch: epoch("read"), At: drawTime(t, name+"read at"), PodUID: pod("read")}
	}
	return x
}

func drawQuestion(t *rapid.T) Question {
	q := Question{Now: start, Epoch: 4, Target: "b", Ordered: rapid.IntRange(0, 3).Draw(t, "ordered") == 0}
	for _, name := range []string{"a", "b", "c"} {
		q.Sites = append(q.Sites, drawSite(t, name))
	}
	return q
}

// TestTheGateIsItsDefinitionI1I2I4 compares the fold with what is meant, written as quantifiers over incarnations.
func TestTheGateIsItsDefinitionI1I2I4(t *testing.T) {
	passed, closed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			q := drawQuestion(t)
			if got, want := Decide(q).Proof != "", passesFirst(q); got != want {
				t.Fatalf("I1, I2: without an old active site: passes %t, by definition %t: %+v", got, want, q)
			}
			q.Old = q.Sites[0]
			got, want := Decide(q), passes(q)
			if (got.Proof != "") != want {
				t.Fatalf("I1, I2, I4: passes %t, by definition %t: %+v", got.Proof != "", want, q)
			}
			if want {
				passed++
			} else {
				closed++
			}
		}
	})
	if passed == 0 || closed == 0 {
		t.Errorf("%d passed and %d closed: this test tested nothing", passed, closed)
	}
}

// TestMoreIncarnationsNeverOpenTheGateI1I2: another incarnation of which nothing is known can only keep it closed.
func TestMoreIncarnationsNeverOpenTheGateI1I2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			q := drawQuestion(t)
			for i := range q.Sites {
				q.Sites[i].NeverRan, q.Sites[i].Unasked = false, false // of such a site no pod is asked
			}
			q.Ordered, q.Old = false, q.Sites[0]
			before := Decide(q).Proof
			i := rapid.IntRange(0, 2).Draw(t, "whose")
			q.Sites[i].Runs = append(slices.Clone(q.Sites[i].Runs), Run{UID: "unknown"})
			if q.Old = q.Sites[0]; before == "" && Decide(q).Proof != "" {
				t.Fatalf("I1, I2: one more incarnation of %s opens it: %+v", q.Sites[i].Name, q)
			}
		}
	})
}

// closedQuestion is about a, which is silent, and b and c, which have acknowledged epoch 4.
func closedQuestion() Question {
	ack := func(name string) Site {
		return Site{Name: name, Acked: true, Ack: Ack{Epoch: 4, PodUID: name, Fenced: true}, Pod: name, Confirmed: name, Answered: start, Lease: 22 * time.Second}
	}
	q := Question{Now: start, Epoch: 4, Target: "b", Sites: []Site{{Name: "a", Answered: start, Lease: 22 * time.Second, Confirmed: "a"}, ack("b"), ack("c")}}
	q.Old = q.Sites[0]
	return q
}

// TestWhichProofPassesI1I2I4: the first that holds is the one that is told, with what belongs to it.
func TestWhichProofPassesI1I2I4(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Question)
		want   Answer
	}{
		"nothing":           {func(*Question) {}, Answer{Vouchers: []string{"b", "c"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
		"somebody writes":   {func(q *Question) { q.Sites[2].Writes = true }, Answer{Writer: "c"}},
		"the target writes": {func(q *Question) { q.Sites[1].Writes = true }, Answer{Vouchers: []string{"b", "c"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
		"its report": {func(q *Question) { q.Old.Ack, q.Old.PodEnded = Ack{Epoch: 5, PodUID: "a", Fenced: true}, true },
			Answer{Proof: ProofReport, Epoch: 5}},
		"read back":      {func(q *Question) { q.Old.ReadBack = ReadBack{Epoch: 4, At: start, PodUID: "a"} }, Answer{Proof: ProofReadBack}},
		"its pod":        {func(q *Question) { q.Old.Pod, q.Old.PodEnded = "a", true }, Answer{Proof: ProofPodEnded}},
		"its node":       {func(q *Question) { q.Old.OutOfService = true }, Answer{Proof: ProofOutOfService}},
		"its lease":      {func(q *Question) { q.Now = start.Add(23900 * time.Millisecond) }, Answer{Proof: ProofLease, Vouchers: []string{"b", "c"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
		"not its lease":  {func(q *Question) { q.Now, q.Old.Outlived = start.Add(time.Hour), true }, Answer{Outlived: true, Vouchers: []string{"b", "c"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
		"a voucher":      {func(q *Question) { q.Now, q.Sites[2].Acked = start.Add(time.Hour), false }, Answer{Vouchers: []string{"b"}, Blockers: []string{"c"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
		"a later answer": {func(q *Question) { q.Sites[2].EndedAt = start.Add(time.Second) }, Answer{Vouchers: []string{"b", "c"}, ReadyAt: start.Add(24900 * time.Millisecond)}},
		"an order":       {func(q *Question) { q.Ordered, q.Now, q.Sites[2].Acked = true, start.Add(23900*time.Millisecond), false }, Answer{Proof: ProofOrder, Vouchers: []string{"b"}, Blockers: []string{"c"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
		"an order waits": {func(q *Question) { q.Ordered, q.Now = true, start.Add(22*time.Second) }, Answer{Vouchers: []string{"b", "c"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
		"nobody open":    {func(q *Question) { q.Old, q.Sites = Site{}, q.Sites[1:] }, Answer{Proof: ProofNobodyOpen}},
		"one may be":     {func(q *Question) { q.Old = Site{} }, Answer{Blockers: []string{"a"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
		"and is ordered away": {func(q *Question) { q.Old, q.Ordered, q.Now = Site{}, true, start.Add(23900*time.Millisecond) },
			Answer{Proof: ProofOrder, Blockers: []string{"a"}, ReadyAt: start.Add(23900 * time.Millisecond)}},
	} {
		q := closedQuestion()
		tc.change(&q)
		got := Decide(q)
		same := got.Proof == tc.want.Proof && got.Epoch == tc.want.Epoch && got.Writer == tc.want.Writer && got.Outlived == tc.want.Outlived &&
			got.ReadyAt.Equal(tc.want.ReadyAt) && slices.Equal(got.Blockers, tc.want.Blockers) && slices.Equal(got.Vouchers, tc.want.Vouchers)
		if !same {
			t.Errorf("I1, I2, I4: %s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestNoReadBackI1: none is no proof, also where all else is zero.
func TestNoReadBackI1(t *testing.T) {
	never := Site{Name: "a", Permitted: time.Time{}.Add(-time.Hour)}
	if proof, _ := (Question{Old: never}).Fenced(never); proof != "" {
		t.Errorf("I1: %s", proof)
	}
}

// TestBlockersAreTheSameInAnyOrderI4: what people read does not change with the order of the sites.
func TestBlockersAreTheSameInAnyOrderI4(t *testing.T) {
	q := closedQuestion()
	q.Sites[1].Acked, q.Sites[2].Acked = false, false
	slices.Reverse(q.Sites)
	if got := Decide(q).Blockers; !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("I4: %v", got)
	}
}

// TestTheLongestLeaseOfRunsI4: of those that may accept commits.
func TestTheLongestLeaseOfRunsI4(t *testing.T) {
	all := Runs{{UID: "a", Lease: 9, Closed: true}, {UID: "b", Lease: 8, Idle: true}, {UID: "c", Lease: 3}, {UID: "d", Lease: 2}}
	if got := all.LongestLease(); got != 3 {
		t.Errorf("I4: %s", got)
	}
	if r, left := all.Beside("c"); !left || r.UID != "a" {
		t.Errorf("I1: beside c: %+v", r)
	}
	if r, left := all.WritesBeside("d"); !left || r.UID != "c" {
		t.Errorf("I1: writes beside d: %+v", r)
	}
	if all.Only("c") || all[2:].ShutBut("c") || !all[:3].ShutBut("c") || !all[1:3].Only("c") {
		t.Error("I1: who is left")
	}
}

// TestTheMarginIsAsTheGuaranteesSayI4: a clock that a time service makes faster by 8.3 % must not end a lease before mysqld has ended,
// whichever guard ends it, with every lease and fence that a spec may ask for. The page and the arithmetic change together or not at all.
func TestTheMarginIsAsTheGuaranteesSayI4(t *testing.T) {
	const (
		faster = 1 + 1.0/12          // chrony's maxslewrate
		apart  = 1 + 500.0/1_000_000 // of two clocks that nobody corrects
	)
	for fence := 500 * time.Millisecond; fence <= time.Minute; fence += 250 * time.Millisecond {
		for lease := 5 * time.Second; lease <= 10*time.Minute; lease += 500 * time.Millisecond {
			margin, shut := Margin(lease+fence), lease+fence+watchdog.Interval
			passed := time.Duration(float64(lease+fence+margin) / faster / apart)
			if passed < shut-time.Microsecond {
				t.Fatalf("I4: a lease of %s (fenceTimeout %s) counts as over after %s, and mysqld may accept commits for %s", lease, fence, passed, shut)
			}
			if longer := time.Duration(float64(passed-shut) * faster); margin > time.Second && longer > 100*time.Millisecond {
				t.Fatalf("I4: a lease of %s (fenceTimeout %s) is waited for %s longer than that takes", lease, fence, longer)
			}
		}
	}
	if lastLook != watchdog.Interval {
		t.Errorf("I4: the supervisor of mysqld looks every %s, the margin counts with %s", watchdog.Interval, lastLook)
	}
	usual := 22 * time.Second // leaseTimeout and fenceTimeout by default
	for page, promises := range map[string][]string{
		"../../docs/guarantees.md": {
			"rounded up to a tenth of a second, and at least a second. With the defaults it is " + seconds(Margin(usual)),
			"the operator waits " + seconds(usual+Margin(usual)) + " by its own clock",
		},
		"../../docs/internals/fence.md": {"the promotion gate waits L + F and a margin, " + seconds(Margin(usual)) + " with the defaults"},
	} {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(string(raw)), " ")
		for _, promise := range promises {
			if !strings.Contains(words, promise) {
				t.Errorf("%s does not say: %s", page, promise)
			}
		}
	}
	for lease, want := range map[time.Duration]time.Duration{
		6 * time.Second: time.Second, 11 * time.Second: time.Second, 17 * time.Second: 1500 * time.Millisecond,
		usual: 1900 * time.Millisecond, 62 * time.Second: 5300 * time.Millisecond, 660 * time.Second: 55500 * time.Millisecond,
	} {
		if got := Margin(lease); got != want {
			t.Errorf("I4: %s, the fence included: a margin of %s, want %s", lease, got, want)
		}
	}
}

// seconds is a time as the page writes it.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}
