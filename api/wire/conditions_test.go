// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestOnlyAGreaterEpochIsNewerI2: never the same one.
func TestOnlyAGreaterEpochIsNewerI2(t *testing.T) {
	for epoch, newer := range map[int64]bool{4: false, 5: false, 6: true} {
		if (wire.Statement{Epoch: epoch}).NewerThan(wire.Statement{Epoch: 5}) != newer {
			t.Errorf("I2: epoch %d", epoch)
		}
	}
}

// TestAWindowIsForOneSiteAndATime: the first of its site that is open.
func TestAWindowIsForOneSiteAndATime(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := wire.Statement{Windows: []wire.Window{
		{Site: "a", Purpose: wire.WindowClone, Deadline: now}, {Site: "b", Purpose: wire.WindowClone, Deadline: now.Add(time.Hour)},
		{Site: "a", Purpose: wire.WindowRotation, Deadline: now.Add(1)},
	}}
	if w, open := s.WindowFor("a", now); !open || w.Purpose != wire.WindowRotation {
		t.Errorf("%+v, %t", w, open)
	}
	if _, open := s.WindowFor("a", now.Add(1)); open {
		t.Error("it is over")
	}
	if _, open := s.WindowFor("c", now); open {
		t.Error("it is for others")
	}
}

// TestAStatementIsSignedAndWholeI3: by the group's key, with every name.
func TestAStatementIsSignedAndWholeI3(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := wire.Statement{Namespace: "n", Group: "g", ActiveSite: "a", Epoch: 1}
	for name, change := range map[string]func(*wire.Statement){
		"":            func(*wire.Statement) {},
		"namespace":   func(s *wire.Statement) { s.Namespace = "" },
		"group":       func(s *wire.Statement) { s.Group = "" },
		"active site": func(s *wire.Statement) { s.ActiveSite = "" },
	} {
		s := whole
		change(&s)
		signed, err := wire.Sign(private, s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.Verify(public, signed); (err == nil) != (name == "") || err != nil && !errors.Is(err, wire.ErrStatement) {
			t.Errorf("I3: without its %s: %v", name, err)
		}
		if got, err := wire.Verify(other, signed); !errors.Is(err, wire.ErrSignature) || got.Epoch != 0 {
			t.Errorf("I3: signed by another: %+v, %v", got, err)
		}
	}
	if _, err := wire.Verify(public, "x"); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("I3: %v", err)
	}
	for body, want := range map[string]error{"no JSON, so no chain": wire.ErrSignature, `{"epoch":"x"}`: wire.ErrStatement} {
		if _, err := wire.Verify(public, wire.Signed(sealed(t, jose.EdDSA, private, body))); !errors.Is(err, want) {
			t.Errorf("I3: %s: %v", body, err)
		}
	}
}

// TestAReportNeedsAWholeKeyI12: a library that takes any key does not have to know how long ours are.
func TestAReportNeedsAWholeKeyI12(t *testing.T) {
	key, long := bytes.Repeat([]byte{1}, wire.ReportKeyBytes), bytes.Repeat([]byte{1}, 2*wire.ReportKeyBytes)
	if _, err := wire.SignReport(long, "c", wire.Report{}); !errors.Is(err, wire.ErrReportKey) {
		t.Errorf("I12: %v", err)
	}
	signed := wire.SignedReport(sealed(t, jose.HS256, long, `{"challenge":"c","report":{}}`))
	if _, err := wire.OpenReport(long, "c", signed); !errors.Is(err, wire.ErrReportKey) {
		t.Errorf("I12: %v", err)
	}
	for name, body := range map[string]string{"no answer": "x", "no report": `{"challenge":"c","report":[]}`} {
		if _, err := wire.OpenReport(key, "c", wire.SignedReport(sealed(t, jose.HS256, key, body))); err == nil {
			t.Errorf("I12: %s is opened", name)
		}
	}
	if _, err := wire.OpenReport(key, "c", signed); !errors.Is(err, wire.ErrReportSignature) {
		t.Errorf("I12: %v", err)
	}
	if _, err := wire.OpenReport(key, "c", "x"); !errors.Is(err, wire.ErrReportSignature) {
		t.Errorf("I12: %v", err)
	}
}

func sealed(t *testing.T, algorithm jose.SignatureAlgorithm, key any, body string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	compact, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return compact
}
