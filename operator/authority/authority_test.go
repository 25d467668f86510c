// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

func testAuthority(t *testing.T) (*Authority, ed25519.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := New()
	a.SetSigner(func(s wire.Statement) (wire.Signed, error) { return wire.Sign(private, s) })
	a.SetSites([]string{"east", "south", "west"})
	return a, public
}

func statement(active string, epoch int64, hold bool) wire.Statement {
	return wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: active, Epoch: epoch, Hold: hold}
}

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestAnswersAreRemembered covers I4: whoever was answered under an older epoch is known with the time.
func TestAnswersAreRemembered(t *testing.T) {
	a, public := testAuthority(t)
	a.Set(statement("east", 3, false), nil, t0)
	signed, err := a.Answer(wire.Ask{Site: "east", Nonce: "n1"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wire.Verify(public, signed); err != nil || s.Nonce != "n1" || s.Epoch != 3 {
		t.Fatalf("answer is %+v, %v", s, err)
	}
	if below, _ := a.Answered([]string{"east"}); !below["east"].IsZero() {
		t.Error("I4: an answer under the present epoch counts as one under an older epoch")
	}
	a.Set(statement("west", 4, true), nil, t0)
	if _, err := a.Answer(wire.Ask{Site: "east", Nonce: "n2"}, t0.Add(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	below, permitted := a.Answered([]string{"east", "west"})
	if !below["east"].Equal(t0) {
		t.Errorf("I4: last answer to east under an older epoch is %v, want %v", below["east"], t0)
	}
	if !permitted["east"].Equal(t0) || !permitted["west"].IsZero() {
		t.Errorf("permitted is %v: only east, and only before the hold", permitted)
	}
	a.Set(statement("west", 5, true), nil, t0)
	if below, _ := a.Answered([]string{"east"}); !below["east"].Equal(t0.Add(5 * time.Second)) {
		t.Errorf("I4: the answer under epoch 4 is forgotten under epoch 5: %v", below)
	}
}

// TestUnnamedAskersCountForAll covers I4: who does not name a site of the group may be any of them.
func TestUnnamedAskersCountForAll(t *testing.T) {
	for _, asker := range []string{"", "nobody-knows"} {
		a, _ := testAuthority(t)
		a.Set(statement("east", 1, false), nil, t0)
		if _, err := a.Answer(wire.Ask{Site: asker, Nonce: "n"}, t0); err != nil {
			t.Fatal(err)
		}
		a.Set(statement("west", 2, true), nil, t0)
		below, permitted := a.Answered([]string{"east", "south"})
		if !below["east"].Equal(t0) || !below["south"].Equal(t0) || !permitted["east"].Equal(t0) {
			t.Errorf("I4: asker %q: below %v, permitted %v", asker, below, permitted)
		}
		if len(a.last)+len(a.below) != 1 {
			t.Errorf("a stranger's name is remembered: %v %v", a.last, a.below)
		}
	}
}

// TestWithoutNonceNothingIsRemembered: such an answer renews no lease, so it must not delay a failover either.
func TestWithoutNonceNothingIsRemembered(t *testing.T) {
	a, _ := testAuthority(t)
	a.Set(statement("east", 1, false), nil, t0)
	if _, err := a.Answer(wire.Ask{Site: "east", Nonce: ""}, t0); err != nil {
		t.Fatal(err)
	}
	a.Set(statement("west", 2, true), nil, t0)
	if below, permitted := a.Answered([]string{"east"}); !below["east"].IsZero() || len(permitted) != 0 {
		t.Errorf("below %v, permitted %v", below, permitted)
	}
}

// TestStatementNeverGoesBack covers I2.
func TestStatementNeverGoesBack(t *testing.T) {
	a, _ := testAuthority(t)
	a.Set(statement("west", 4, true), nil, t0)
	a.Set(statement("east", 3, false), nil, t0)
	if s := a.Statement(); s.Epoch != 4 || s.ActiveSite != "west" {
		t.Errorf("I2: statement went back to %+v", s)
	}
}

// TestAStatementThatNobodyStandsByPermitsNobody covers I3 and I12 (simulation, seed 11907): status was restored, and what the loop looks
// at by now, such as an empty volume in the place of the active site's, is no answer to what was said before. Who is open stays open.
func TestAStatementThatNobodyStandsByPermitsNobody(t *testing.T) {
	a, key := testAuthority(t)
	a.Set(statement("west", 4, false), nil, t0)
	a.Set(statement("east", 1, false), map[string]string{"west": "new"}, t0)
	signed, err := a.Answer(wire.Ask{Site: "west", Pod: "new", Nonce: "n"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wire.Verify(key, signed); err != nil || !s.Hold || s.Epoch != 4 || s.ActiveSite != "west" {
		t.Errorf("I3: answered with %+v (%v)", s, err)
	}
	a.Set(statement("west", 5, false), nil, t0)
	if s := a.Statement(); s.Hold {
		t.Error("it holds for ever")
	}
}

// TestPushRenewsNothing covers I4: a push is not an answer.
func TestPushRenewsNothing(t *testing.T) {
	a, _ := testAuthority(t)
	a.Set(statement("east", 1, false), nil, t0)
	if _, err := a.Sign(t0); err != nil {
		t.Fatal(err)
	}
	a.Set(statement("west", 2, true), nil, t0)
	if below, permitted := a.Answered([]string{"east"}); !below["east"].IsZero() || len(permitted) != 0 {
		t.Errorf("I4: a push counts as an answer: %v %v", below, permitted)
	}
}

// TestAPushSaysWhatIsSo covers I2 and I3: what was signed is pushed again only while it is still so, and with the key that signs.
func TestAPushSaysWhatIsSo(t *testing.T) {
	a, public := testAuthority(t)
	push := func(key ed25519.PublicKey, now time.Time) wire.Statement {
		t.Helper()
		signed, err := a.Sign(now)
		if err != nil {
			t.Fatal(err)
		}
		s, err := wire.Verify(key, signed)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a.Set(statement("east", 3, false), nil, t0)
	if s := push(public, t0); s.Epoch != 3 || s.Hold {
		t.Errorf("pushed %+v", s)
	}
	a.Set(statement("east", 3, false), nil, t0.Add(time.Second))
	if s := push(public, t0.Add(time.Second)); !s.IssuedAt.Equal(t0) {
		t.Errorf("what had not changed was signed anew: %+v", s)
	}
	if s := push(public, t0.Add(pushFor)); !s.IssuedAt.Equal(t0.Add(pushFor)) {
		t.Errorf("an old push goes on: %+v", s)
	}
	if s := push(public, t0); !s.IssuedAt.Equal(t0) {
		t.Errorf("a clock that was set back brings an answer from the future: %+v", s)
	}
	a.Set(statement("east", 3, true), nil, t0)
	if s := push(public, t0); !s.Hold {
		t.Error("I3: a hold is not pushed")
	}
	window := statement("east", 3, true)
	window.Windows = []wire.Window{{Site: "west", Deadline: t0.Add(time.Minute)}}
	a.Set(window, nil, t0)
	if s := push(public, t0); len(s.Windows) != 1 {
		t.Error("a window is not pushed")
	}
	a.Set(statement("west", 4, true), nil, t0)
	if s := push(public, t0); s.Epoch != 4 || len(s.Windows) != 0 {
		t.Errorf("I2: pushed %+v", s)
	}
	a.Set(statement("east", 1, false), nil, t0)
	if s := push(public, t0); s.Epoch != 4 || !s.Hold {
		t.Errorf("I2: pushed %+v", s)
	}
	other, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	a.SetSigner(func(s wire.Statement) (wire.Signed, error) { return wire.Sign(private, s) })
	if s := push(other, t0); s.Epoch != 4 {
		t.Errorf("pushed %+v", s)
	}
}

// TestNoStatementBeforeTheFirstEpoch covers I3: before there is an epoch nobody gets anything to open on.
func TestNoStatementBeforeTheFirstEpoch(t *testing.T) {
	a, _ := testAuthority(t)
	if _, err := a.Answer(wire.Ask{Site: "east", Nonce: "n"}, t0); !errors.Is(err, wire.ErrNoStatement) {
		t.Errorf("answer before the first epoch: %v", err)
	}
}

// TestAnOldWordPermitsNobody covers I3: while the loop waits for something else, a site that comes up again must not open on
// what the loop saw long ago.
func TestAnOldWordPermitsNobody(t *testing.T) {
	a, key := testAuthority(t)
	a.Set(statement("east", 3, false), nil, t0)
	held := func(now time.Time) bool {
		t.Helper()
		signed, err := a.Answer(wire.Ask{Site: "east", Nonce: "n"}, now)
		if err != nil {
			t.Fatal(err)
		}
		s, err := wire.Verify(key, signed)
		if err != nil {
			t.Fatal(err)
		}
		return s.Hold
	}
	if held(t0) {
		t.Error("a fresh word holds")
	}
	late := t0.Add(releaseValidity + time.Second)
	if !held(late) {
		t.Error("I3: an old word permits to open")
	}
	if _, permitted := a.Answered([]string{"east"}); !permitted["east"].Before(late) {
		t.Error("an answer that holds is remembered as a permission")
	}
}

// TestOnlyThePodThatWasLookedAtMayOpen covers I1 and I12: a pod that was deleted by force may still run beside its successor.
func TestOnlyThePodThatWasLookedAtMayOpen(t *testing.T) {
	a, key := testAuthority(t)
	a.Set(statement("east", 3, false), map[string]string{"east": "new"}, t0)
	for pod, want := range map[string]bool{"new": false, "old": true, "": false} {
		signed, err := a.Answer(wire.Ask{Site: "east", Pod: pod, Nonce: "n"}, t0)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := wire.Verify(key, signed); err != nil || s.Hold != want {
			t.Errorf("I1: pod %q is answered with hold %t, want %t (%v)", pod, s.Hold, want, err)
		}
	}
	a.Set(statement("east", 3, false), nil, t0)
	signed, err := a.Answer(wire.Ask{Site: "east", Pod: "old", Nonce: "n"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wire.Verify(key, signed); err != nil || !s.Hold {
		t.Errorf("I1: a pod that the operator cannot see may open: %+v %v", s, err)
	}
}

// TestAProcessThatStoodStillCountsFromThen covers I4 (simulation, seed 5054): what another leader answered meanwhile is not
// known to it.
func TestAProcessThatStoodStillCountsFromThen(t *testing.T) {
	var p Pulse
	now := t0
	p.Beat(now.Add(-frozenAfter - time.Second))
	if got := p.ThawedAt(now); !got.Equal(now) {
		t.Errorf("I4: a process that goes on after it stood still counts from %v", got)
	}
	p.Beat(now)
	if got := p.ThawedAt(now.Add(time.Second)); !got.Equal(now) {
		t.Errorf("I4: a second later it counts from %v, want when it went on", got)
	}
}

// TestRenewedIsTheLastAnswerUnderAnyEpochI4: a lease that was renewed under the present epoch has not ended either.
func TestRenewedIsTheLastAnswerUnderAnyEpochI4(t *testing.T) {
	a, _ := testAuthority(t)
	ask := func(site string, at time.Time) {
		t.Helper()
		if _, err := a.Answer(wire.Ask{Site: site, Nonce: "n"}, at); err != nil {
			t.Fatal(err)
		}
	}
	a.Set(statement("east", 3, false), nil, t0)
	ask("east", t0.Add(time.Second))
	a.Set(statement("west", 4, false), nil, t0.Add(2*time.Second))
	if got := a.Renewed([]string{"east", "west"}); !got["east"].Equal(t0.Add(time.Second)) || !got["west"].IsZero() {
		t.Errorf("I4: under the epoch before: %v", got)
	}
	ask("east", t0.Add(3*time.Second))
	ask("stranger", t0.Add(4*time.Second))
	if got := a.Renewed([]string{"east"}); !got["east"].Equal(t0.Add(4 * time.Second)) {
		t.Errorf("I4: a stranger may have been east: %v", got)
	}
	ask("east", t0.Add(5*time.Second))
	if got := a.Renewed([]string{"east"}); !got["east"].Equal(t0.Add(5 * time.Second)) {
		t.Errorf("I4: under the present epoch: %v", got)
	}
}
