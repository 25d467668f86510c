// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

func testAuthority(t *testing.T) (*authority, ed25519.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority()
	a.setKey(private)
	a.setSites([]string{"east", "south", "west"})
	return a, public
}

func statement(active string, epoch int64, hold bool) wire.Statement {
	return wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: active, Epoch: epoch, Hold: hold}
}

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestAnswersAreRemembered covers I4: whoever was answered under an older epoch is known with the time.
func TestAnswersAreRemembered(t *testing.T) {
	a, public := testAuthority(t)
	a.set(statement("east", 3, false))
	signed, err := a.answer("east", "n1", t0)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wire.Verify(public, signed); err != nil || s.Nonce != "n1" || s.Epoch != 3 {
		t.Fatalf("answer is %+v, %v", s, err)
	}
	if below, _ := a.answered([]string{"east"}); !below["east"].IsZero() {
		t.Error("I4: an answer under the present epoch counts as one under an older epoch")
	}
	a.set(statement("west", 4, true))
	if _, err := a.answer("east", "n2", t0.Add(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	below, permitted := a.answered([]string{"east", "west"})
	if !below["east"].Equal(t0) {
		t.Errorf("I4: last answer to east under an older epoch is %v, want %v", below["east"], t0)
	}
	if !permitted["east"].Equal(t0) || !permitted["west"].IsZero() {
		t.Errorf("permitted is %v: only east, and only before the hold", permitted)
	}
	a.set(statement("west", 5, true))
	if below, _ := a.answered([]string{"east"}); !below["east"].Equal(t0.Add(5 * time.Second)) {
		t.Errorf("I4: the answer under epoch 4 is forgotten under epoch 5: %v", below)
	}
}

// TestUnnamedAskersCountForAll covers I4: who does not name a site of the group may be any of them.
func TestUnnamedAskersCountForAll(t *testing.T) {
	for _, asker := range []string{"", "nobody-knows"} {
		a, _ := testAuthority(t)
		a.set(statement("east", 1, false))
		if _, err := a.answer(asker, "n", t0); err != nil {
			t.Fatal(err)
		}
		a.set(statement("west", 2, true))
		below, permitted := a.answered([]string{"east", "south"})
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
	a.set(statement("east", 1, false))
	if _, err := a.answer("east", "", t0); err != nil {
		t.Fatal(err)
	}
	a.set(statement("west", 2, true))
	if below, permitted := a.answered([]string{"east"}); !below["east"].IsZero() || len(permitted) != 0 {
		t.Errorf("below %v, permitted %v", below, permitted)
	}
}

// TestStatementNeverGoesBack covers I2.
func TestStatementNeverGoesBack(t *testing.T) {
	a, _ := testAuthority(t)
	a.set(statement("west", 4, true))
	a.set(statement("east", 3, false))
	if s := a.statement(); s.Epoch != 4 || s.ActiveSite != "west" {
		t.Errorf("I2: statement went back to %+v", s)
	}
}

// TestPushRenewsNothing covers I4: a push is not an answer.
func TestPushRenewsNothing(t *testing.T) {
	a, _ := testAuthority(t)
	a.set(statement("east", 1, false))
	if _, err := a.sign(t0); err != nil {
		t.Fatal(err)
	}
	a.set(statement("west", 2, true))
	if below, permitted := a.answered([]string{"east"}); !below["east"].IsZero() || len(permitted) != 0 {
		t.Errorf("I4: a push counts as an answer: %v %v", below, permitted)
	}
}

// TestNoStatementBeforeTheFirstEpoch covers I3: before there is an epoch nobody gets anything to open on.
func TestNoStatementBeforeTheFirstEpoch(t *testing.T) {
	a, _ := testAuthority(t)
	if _, err := a.answer("east", "n", t0); !errors.Is(err, wire.ErrNoStatement) {
		t.Errorf("answer before the first epoch: %v", err)
	}
}
