// SPDX-License-Identifier: Apache-2.0

// Package wire holds the bodies, paths and ports of the project's HTTP endpoints, and the signed statement that says
// who may write. It does no I/O.
package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// Statement is the operator's word on who may write. It travels as a Signed and is relayed unchanged, so that nobody
// without the group's private key can make a site fence or open.
type Statement struct {
	Namespace string `json:"namespace"`
	Group     string `json:"group"`
	// ActiveSite is the only site that may accept writes under this epoch.
	ActiveSite string `json:"activeSite"`
	// Epoch grows by one with every change of the active site. Statements are ordered by it and by nothing else.
	Epoch int64 `json:"epoch"`
	// Hold forbids every site to open writes on this statement: the active site was chosen but the promotion gate was
	// not passed yet, or the active site came back and was not compared with the others yet. A site that is already
	// open and is named stays open.
	Hold bool `json:"hold,omitempty"`
	// IssuedAt is the operator's clock, for people and logs. Nothing is decided by it.
	IssuedAt time.Time `json:"issuedAt"`
	// LeaseTimeoutMillis is how long a site may stay writable without an answer from the operator or a peer.
	LeaseTimeoutMillis int64 `json:"leaseTimeoutMillis"`
	// Nonce repeats what the asker sent. Only a statement that carries the asker's own fresh nonce may open writes:
	// a delayed or replayed one never can.
	Nonce string `json:"nonce,omitempty"`
	// Windows allow sites that are not active to be writable for a purpose, behind offline_mode, until a deadline.
	Windows []Window `json:"windows,omitempty"`
	// Keys is how the key that signs follows from those before it; empty as long as it is the group's first.
	Keys Chain `json:"keys,omitempty"`
}

// MaxEpoch is the highest epoch that a statement may carry. Every reader of JSON takes it for the number that it is, and there is
// room above it: the next one never turns negative.
const MaxEpoch int64 = 1<<53 - 1

// Window lets a site that is not active be writable behind offline_mode=ON for a purpose.
type Window struct {
	Site     string        `json:"site"`
	Purpose  WindowPurpose `json:"purpose"`
	Deadline time.Time     `json:"deadline"`
}

// WindowPurpose is why a window is open.
type WindowPurpose string

// The purposes of a window.
const (
	WindowBootstrap WindowPurpose = "Bootstrap"
	WindowClone     WindowPurpose = "Clone"
	WindowRotation  WindowPurpose = "Rotation"
)

// NewerThan is the only definition of "strictly newer": a greater epoch, never a later clock.
func (s Statement) NewerThan(other Statement) bool { return s.Epoch > other.Epoch }

// WindowFor returns the window of a site that is open at now.
func (s Statement) WindowFor(site string, now time.Time) (Window, bool) {
	for _, w := range s.Windows {
		if w.Site == site && now.Before(w.Deadline) {
			return w, true
		}
	}
	return Window{}, false
}

// Signed is a statement in JWS compact form (EdDSA).
type Signed string

// Errors of Verify.
var (
	ErrSignature = errors.New("statement is not signed by the group's authority")
	ErrStatement = errors.New("statement is incomplete")
)

// Sign signs a statement with the group's private key.
func Sign(key ed25519.PrivateKey, s Statement) (Signed, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode statement: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, nil)
	if err != nil {
		return "", fmt.Errorf("make signer: %w", err)
	}
	jws, err := signer.Sign(body)
	if err != nil {
		return "", fmt.Errorf("sign statement: %w", err)
	}
	compact, err := jws.CompactSerialize()
	return Signed(compact), err
}

// KeyID names a public key in reports and logs.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// Verify checks the signature for one who trusts anchor, and returns the statement. Any algorithm but EdDSA is refused.
func Verify(anchor ed25519.PublicKey, signed Signed) (Statement, error) {
	s, _, err := VerifyBy(anchor, signed)
	return s, err
}

// VerifyBy is Verify, and returns by which key the statement is signed: anchor, or one that took its place.
func VerifyBy(anchor ed25519.PublicKey, signed Signed) (Statement, ed25519.PublicKey, error) {
	jws, err := jose.ParseSignedCompact(string(signed), []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return Statement{}, nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	// What is read here is not believed: a chain proves itself, and names the key that the whole must be signed by.
	var claimed struct {
		Keys Chain `json:"keys"`
	}
	if err := json.Unmarshal(jws.UnsafePayloadWithoutVerification(), &claimed); err != nil {
		return Statement{}, nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	key, trusted := claimed.Keys.Last(anchor)
	if !trusted {
		return Statement{}, nil, fmt.Errorf("%w: nothing leads from the trusted key %s to the one that signs", ErrSignature, KeyID(anchor))
	}
	body, err := jws.Verify(key)
	if err != nil {
		return Statement{}, nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	var s Statement
	if err := json.Unmarshal(body, &s); err != nil {
		return Statement{}, nil, fmt.Errorf("%w: %w", ErrStatement, err)
	}
	if s.Namespace == "" || s.Group == "" || s.ActiveSite == "" || s.Epoch < 1 || s.Epoch > MaxEpoch {
		return Statement{}, nil, ErrStatement
	}
	return s, key, nil
}
