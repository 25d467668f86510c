// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"errors"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/clock/clocktest"
)

// TestWithoutAKeyNobodyHearsAnything covers I3: what is not signed is no statement.
func TestWithoutAKeyNobodyHearsAnything(t *testing.T) {
	a := New()
	a.Set(statement("east", 3, false), nil, t0)
	if _, err := a.Answer(wire.Ask{Site: "east", Nonce: "n"}, t0); !errors.Is(err, wire.ErrNoStatement) {
		t.Errorf("I3: answers without a key: %v", err)
	}
	if _, err := a.Sign(t0); !errors.Is(err, wire.ErrNoStatement) {
		t.Errorf("I3: pushes without a key: %v", err)
	}
	if _, permitted := a.Answered(nil); len(permitted) != 0 {
		t.Errorf("who heard nothing counts as permitted: %v", permitted)
	}
}

// TestWhatCannotBeSignedIsNotPushed: an error is not kept for a statement, and the next push tries again.
func TestWhatCannotBeSignedIsNotPushed(t *testing.T) {
	a := New()
	a.Set(statement("east", 3, false), nil, t0)
	broken := errors.New("no randomness")
	a.SetSigner(func(wire.Statement) (wire.Signed, error) { return "", broken })
	for range 2 {
		if _, err := a.Sign(t0); !errors.Is(err, broken) {
			t.Errorf("pushes what was not signed: %v", err)
		}
	}
}

// TestNothingIsPushedBeforeTheFirstEpoch covers I3: a sidecar has nothing to take for a statement.
func TestNothingIsPushedBeforeTheFirstEpoch(t *testing.T) {
	a, _ := testAuthority(t)
	if _, err := a.Sign(t0); !errors.Is(err, wire.ErrNoStatement) {
		t.Errorf("I3: pushes before the first epoch: %v", err)
	}
}

// TestAClockThatGoesBackForgetsNoAnswer covers I4: what was answered last under any older epoch counts.
func TestAClockThatGoesBackForgetsNoAnswer(t *testing.T) {
	a, _ := testAuthority(t)
	later := t0.Add(5 * time.Second)
	for i, at := range []time.Time{later, t0} {
		a.Set(statement("east", int64(3+i), false), nil, at)
		if _, err := a.Answer(wire.Ask{Site: "east", Nonce: "n"}, at); err != nil {
			t.Fatal(err)
		}
	}
	a.Set(statement("west", 5, true), nil, t0)
	if below, _ := a.Answered([]string{"east"}); !below["east"].Equal(later) {
		t.Errorf("I4: east was answered at %v, and counts as answered at %v", later, below["east"])
	}
}

// TestTheSameEpochIsNoNewOne: the loop stands by its statement every two seconds, and no answer becomes an older one by that. Nobody
// could ever be promoted otherwise.
func TestTheSameEpochIsNoNewOne(t *testing.T) {
	a, _ := testAuthority(t)
	a.Set(statement("east", 3, false), nil, t0)
	if _, err := a.Answer(wire.Ask{Site: "east", Nonce: "n"}, t0); err != nil {
		t.Fatal(err)
	}
	a.Set(statement("east", 3, true), nil, t0)
	if below, _ := a.Answered([]string{"east"}); !below["east"].IsZero() {
		t.Errorf("answered under an older epoch at %v", below["east"])
	}
}

// TestWhoDoesNotSayItsNameIsNoEarlierAnswer covers I4: the last of both counts.
func TestWhoDoesNotSayItsNameIsNoEarlierAnswer(t *testing.T) {
	a, _ := testAuthority(t)
	later := t0.Add(5 * time.Second)
	a.Set(statement("east", 3, false), nil, t0)
	for _, q := range []struct {
		site string
		at   time.Time
	}{{"", t0}, {"east", later}} {
		if _, err := a.Answer(wire.Ask{Site: q.site, Nonce: "n"}, q.at); err != nil {
			t.Fatal(err)
		}
	}
	a.Set(statement("west", 4, true), nil, later)
	if below, _ := a.Answered([]string{"east", "south"}); !below["east"].Equal(later) || !below["south"].Equal(t0) {
		t.Errorf("I4: %v", below)
	}
}

// TestOnlyTheActiveSiteIsPermitted: what another site is told permits nobody, and must not delay a failover.
func TestOnlyTheActiveSiteIsPermitted(t *testing.T) {
	a, key := testAuthority(t)
	a.Set(statement("east", 3, false), nil, t0)
	if _, err := a.Answer(wire.Ask{Site: "west", Nonce: "n"}, t0); err != nil {
		t.Fatal(err)
	}
	_, permitted := a.Answered(nil)
	if len(permitted) != 0 {
		t.Errorf("permitted %v", permitted)
	}
	permitted["east"] = t0 // I4: whoever asked changes nothing by that
	if _, kept := a.Answered(nil); len(kept) != 0 {
		t.Errorf("I4: permitted %v", kept)
	}
	a.Set(statement("east", 4, true), nil, t0)
	if _, err := a.Answer(wire.Ask{Site: "east", Nonce: "n"}, t0); err != nil {
		t.Fatal(err)
	}
	if _, permitted := a.Answered(nil); len(permitted) != 0 {
		t.Errorf("a hold permits %v", permitted)
	}
	// I3: an answer that holds is for the question that was asked too.
	signed, err := a.Answer(wire.Ask{Site: "east", Pod: "unknown", Nonce: "mine"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wire.Verify(key, signed); err != nil || !s.Hold || s.Nonce != "mine" {
		t.Errorf("I3: answered with %+v (%v)", s, err)
	}
}

// TestPulse covers I4: a process that stood still answers nobody until another leader would have ended it.
func TestPulse(t *testing.T) {
	var p Pulse
	if p.Beat(t0); !p.ThawedAt(t0).IsZero() || !p.Steady(t0) {
		t.Errorf("a process that began just now stood still until %v", p.ThawedAt(t0))
	}
	if p.Beat(t0.Add(frozenAfter)); !p.ThawedAt(t0.Add(frozenAfter)).IsZero() {
		t.Error("a break that is short enough counts")
	}
	if late := t0.Add(3 * frozenAfter); p.Steady(late) {
		t.Error("I4: steady although its heart does not beat")
	}
	thawed := t0.Add(3 * frozenAfter)
	p.Beat(thawed)
	if p.Steady(thawed) {
		t.Error("I4: steady as soon as it goes on")
	}
	for at := thawed; at.Before(thawed.Add(thawing)); at = at.Add(BeatEvery) {
		p.Beat(at)
	}
	if at := thawed.Add(thawing); p.Steady(at) {
		t.Error("I4: steady before another leader would have ended it")
	} else if !p.Steady(at.Add(1)) {
		t.Error("never steady again")
	}
	if (&Pulse{}).Steady(t0) {
		t.Error("I4: steady before the first beat")
	}
	if at := (&Pulse{}).ThawedAt(t0); !at.IsZero() {
		t.Errorf("a process that never beat stood still until %v", at)
	}
}

// TestASuspendedOperatorIsNotSteadyI4: a machine was suspended for an hour, and Go's monotonic clock stood still. Another operator has led
// meanwhile. The former one answers nobody: not before its first beat, and not until its election has had the time to end it.
func TestASuspendedOperatorIsNotSteadyI4(t *testing.T) {
	var p Pulse
	began := time.Now()
	p.Beat(began)
	awake := clocktest.Suspended(began.Add(time.Second), time.Hour)
	if p.Steady(awake) {
		t.Error("I4: steady before its first beat")
	}
	if at := p.ThawedAt(awake); !at.Equal(awake) {
		t.Errorf("I4: it continues now, and it is known as %v", at)
	}
	p.Beat(awake)
	for after := time.Duration(0); after <= thawing; after += BeatEvery {
		p.Beat(awake.Add(after))
		if p.Steady(awake.Add(after)) {
			t.Errorf("I4: steady %s after it continued", after)
		}
	}
	if at := p.ThawedAt(awake.Add(thawing)); !at.Equal(awake) {
		t.Errorf("I4: it continued at %v, and it is known as %v", awake, at)
	}
	if !p.Steady(awake.Add(thawing + 1)) {
		t.Error("never steady again")
	}
}

// TestNobodyOpensOnWhatWasSaidBeforeASleepI3: the loop has not looked since the machine was suspended, so its statement holds.
func TestNobodyOpensOnWhatWasSaidBeforeASleepI3(t *testing.T) {
	a := New()
	var signed wire.Statement
	a.SetSigner(func(s wire.Statement) (wire.Signed, error) { signed = s; return "signed", nil })
	began := time.Now()
	a.SetSites([]string{"east"})
	a.Set(statement("east", 3, false), map[string]string{"east": "pod"}, began)
	ask := wire.Ask{Site: "east", Nonce: "n", Pod: "pod"}
	if _, err := a.Answer(ask, began.Add(time.Second)); err != nil || signed.Hold {
		t.Fatalf("awake: %+v, %v", signed, err)
	}
	if _, err := a.Answer(ask, clocktest.Suspended(began.Add(time.Second), time.Hour)); err != nil || !signed.Hold {
		t.Errorf("I3: after an hour's sleep: %+v, %v", signed, err)
	}
}

// TestAPodNeverOpensOnTheWordForAnotherI1: a site's pod is replaced, and what comes next holds; between the two nobody is let open as the new pod.
func TestAPodNeverOpensOnTheWordForAnotherI1(t *testing.T) {
	a := New()
	var signed wire.Statement // written under the lock of the Authority, by the one goroutine that asks
	a.SetSigner(func(s wire.Statement) (wire.Signed, error) { signed = s; return "signed", nil })
	a.SetSites([]string{"east"})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for epoch := int64(1); epoch < 20_000; epoch += 2 {
			a.Set(statement("east", epoch, false), map[string]string{"east": "old"}, t0)
			a.Set(statement("east", epoch+1, true), map[string]string{"east": "new"}, t0)
		}
	}()
	for {
		if _, err := a.Answer(wire.Ask{Site: "east", Nonce: "n", Pod: "new"}, t0); err == nil && !signed.Hold {
			t.Fatalf("I1: the new pod may open on what was said of the old one: %+v", signed)
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}

// TestAHeldAnswerIsOfNowI3: what is said to a stranger holds, and is dated when it is said.
func TestAHeldAnswerIsOfNowI3(t *testing.T) {
	a := New()
	if a.HasSigner() {
		t.Error("it is known how to sign before there is a key")
	}
	var signed wire.Statement
	a.SetSigner(func(s wire.Statement) (wire.Signed, error) { signed = s; return "signed", nil })
	if !a.HasSigner() {
		t.Error("it is not known how to sign")
	}
	a.Set(statement("east", 3, false), map[string]string{"east": "old"}, t0)
	if _, err := a.Answer(wire.Ask{Site: "east", Nonce: "n", Pod: "new"}, t0); err != nil || !signed.Hold || !signed.IssuedAt.Equal(t0) || signed.Nonce != "n" {
		t.Errorf("I3: %+v, %v", signed, err)
	}
}
