// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/clock/clocktest"
)

const own = "mfg-system/mfg-operator"

var start = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func group(lease string, since time.Time) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{}
	g.UID = types.UID("orders")
	if lease != "" {
		g.Status.Claim = &v1alpha1.GroupClaim{Lease: lease, Holder: "mfg-operator-1", Since: metav1.Time{Time: since}}
	}
	return g
}

func TestPromise(t *testing.T) {
	for identity, want := range map[string]time.Duration{
		Promise("mfg-operator-1_uid"):  SpeaksFor,
		"mfg-operator-1_uid":           0, // a release of before, or one without a standby
		"a_uid_answers-":               0,
		"a_uid_answers-soon":           0,
		"a_uid_answers--3s":            0,
		"a_uid_answers-0s":             0,
		"a_uid_answers-1h":             0,
		"":                             0,
		"a_uid_answers-1m0s":           time.Minute,
		"a_uid_answers-3s_answers-40s": 0,
	} {
		if d, ok := promised(identity); ok != (want > 0) || ok && d != want {
			t.Errorf("%q promises %s, %t, want %s", identity, d, ok, want)
		}
	}
}

func TestMaySpeak(t *testing.T) {
	term := &Term{}
	if term.MaySpeak(at(0)) {
		t.Error("I4: it speaks before it ever led")
	}
	term.Renewed(at(0))
	for after, want := range map[float64]bool{0: true, 2.7: true, 2.75: true, 2.8: false, 3: false, 60: false} {
		if got := term.MaySpeak(at(after)); got != want {
			t.Errorf("I4: %.1f s after the renewal was asked for: speaks %t", after, got)
		}
	}
	term.Renewed(at(60))
	if !term.MaySpeak(at(61)) {
		t.Error("silent although it renewed")
	}
}

// TestASuspendedMachineIsNoticed covers I4: Go's monotonic clock stands still while a machine is suspended.
func TestASuspendedMachineIsNoticed(t *testing.T) {
	term := &Term{}
	now := time.Now()
	term.Renewed(now)
	if !term.MaySpeak(now.Add(time.Second)) {
		t.Error("silent although it was not suspended")
	}
	if term.MaySpeak(clocktest.Suspended(now.Add(time.Second), time.Hour)) {
		t.Error("I4: it speaks for an hour that it has slept through")
	}
}

// TestFormer covers I4 and I9: each thing that is not known makes the new leader count from its own beginning.
func TestFormer(t *testing.T) {
	holder := Promise("a_uid")
	last := Record{Holder: holder, Renewed: 7}
	type world struct {
		term    Term
		group   *v1alpha1.MysqlFailoverGroup
		started time.Time
	}
	usual := func(w *world) {
		w.term.Claimed(group(own, at(-100)), at(-50))
		w.term.Look(Record{Holder: holder, Renewed: 6}, at(0))
		w.term.Look(last, at(1))
		w.term.Look(last, at(10)) // seen again and again: it counts from when it was new
		w.term.Took(last)
	}
	for name, tc := range map[string]struct {
		change func(*world)
		known  bool
		reason string
	}{
		"usual": {usual, true, "a holder that promises, seen all the time"},
		"no promise": {func(w *world) {
			usual(w)
			old := Record{Holder: "b_uid", Renewed: 8}
			w.term.Look(old, at(2))
			w.term.Took(old)
		}, false, "a release of before answers for longer"},
		"not seen": {func(w *world) { usual(w); w.term.Took(Record{Holder: holder, Renewed: 9}) }, false, "a renewal that nobody saw may be younger"},
		"never looked": {func(w *world) {
			w.term.Claimed(group(own, at(-100)), at(-50))
			w.term.Took(Record{Holder: holder})
		}, false, "nothing was seen"},
		"the Lease was made": {func(w *world) { usual(w); w.term.Took(Record{}) }, false, "who led by one that was deleted is not known"},
		"not taken":          {func(w *world) { w.term.Claimed(group(own, at(-100)), at(-50)); w.term.Look(last, at(1)) }, false, "it does not lead"},
		"another loop": {func(w *world) { usual(w); w.term.Former(w.group, w.started); w.started = at(21) }, false,
			"the loop before it may have answered"},
		"the same loop": {func(w *world) { usual(w); w.term.Former(w.group, w.started) }, true, "it is asked at every poll"},
		"claimed since": {func(w *world) { usual(w); w.group = group(own, at(5)); w.term.Claimed(w.group, at(6)) }, false,
			"another release may have answered until it handed over"},
		"claimed anew, not seen": {func(w *world) { usual(w); w.group = group(own, at(5)) }, false, "the claim is not the one that was seen"},
		"claimed elsewhere": {func(w *world) {
			w.group = group("mfg-blue/mfg-operator", at(-100))
			w.term.Claimed(w.group, at(-50))
			w.term.Look(last, at(1))
			w.term.Took(last)
		}, false, "another release operates it"},
		"not claimed": {func(w *world) {
			w.group = group("", at(0))
			w.term.Claimed(w.group, at(-50))
			w.term.Look(last, at(1))
			w.term.Took(last)
		}, false, "it may be operated without a claim"},
		"never seen": {func(w *world) { w.term.Look(last, at(1)); w.term.Took(last) }, false, "a standby that just began"},
		"forgotten":  {func(w *world) { usual(w); w.term.Forget(w.group.UID) }, false, "it is another group"},
		"the standby began late": {func(w *world) {
			w.term.Look(last, at(1))
			w.term.Claimed(group(own, at(-100)), at(4.3))
			w.term.Took(last)
		}, false, "the claim was seen after the last answer"},
		"the standby began in time": {func(w *world) {
			w.term.Look(last, at(1))
			w.term.Claimed(group(own, at(-100)), at(4))
			w.term.Took(last)
		}, true, "the claim stood at that moment"},
	} {
		w := &world{term: Term{Lease: own}, group: group(own, at(-100)), started: at(20)}
		tc.change(w)
		want := time.Time{}
		if tc.known {
			want = at(4.25) // 3 s, if a time service makes its clock run faster by a twelfth
		}
		if got := w.term.Former(w.group, w.started); !got.Equal(want) {
			t.Errorf("I4, %s: %s, want %s: %s", name, got, want, tc.reason)
		}
	}
}

type answers struct{}

func (answers) Answer(wire.Ask) (wire.Signed, error) { return "signed", nil }

// TestDoor covers I4: what is answered after the last renewal is old, the next leader would not count.
func TestDoor(t *testing.T) {
	term := &Term{}
	door := Door{answers{}, term}
	if _, err := door.Answer(wire.Ask{}); !errors.Is(err, wire.ErrNotLeading) {
		t.Errorf("I4: a standby answers: %v", err)
	}
	term.Renewed(time.Now())
	if signed, err := door.Answer(wire.Ask{}); err != nil || signed != "signed" {
		t.Errorf("a leader answers %q, %v", signed, err)
	}
	term.Renewed(time.Now().Add(-SpeaksFor - time.Second))
	if _, err := door.Answer(wire.Ask{}); !errors.Is(err, wire.ErrNotLeading) {
		t.Errorf("I4: it answers although it did not renew: %v", err)
	}
}
