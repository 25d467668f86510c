// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"slices"
)

// Chain is how the trust in one key of an authority goes on to the next: the oldest key first, and with each other one the signature
// of the one before it. Who knows any of its keys knows by it the last one, which signs. It proves itself, so it travels in the
// statements and needs no place that nobody else can write to.
type Chain []Link

// Link is one key of a chain.
type Link struct {
	Key []byte `json:"key"`
	// Signature is by the key before, over this key; the first one of a chain has none.
	Signature []byte `json:"signature,omitempty"`
}

// MaxChain is how many keys a chain has at most. A statement with as many still fits into its slot on the data volume.
const MaxChain = 8

// linkPurpose begins what is signed of a key. No statement begins like this.
const linkPurpose = "mysql-mfg.io: statements are signed with this key now: "

// Last is the key that signs, for one who trusts anchor. It is false if anchor is not in the chain, or a key after it is not signed by
// the one before. An empty chain is that of a key that has replaced no other.
func (c Chain) Last(anchor ed25519.PublicKey) (ed25519.PublicKey, bool) {
	if len(c) == 0 {
		return anchor, len(anchor) == ed25519.PublicKeySize
	}
	at := c.index(anchor)
	if at < 0 || len(c) > MaxChain {
		return nil, false
	}
	last := anchor
	for _, link := range c[at+1:] {
		if len(link.Key) != ed25519.PublicKeySize || !ed25519.Verify(last, linked(link.Key), link.Signature) {
			return nil, false
		}
		last = link.Key
	}
	return last, true
}

// Has is true if a key is in the chain: who trusts that one trusts the last one.
func (c Chain) Has(key ed25519.PublicKey) bool { return c.index(key) >= 0 }

func (c Chain) index(key ed25519.PublicKey) int {
	if len(key) != ed25519.PublicKeySize {
		return -1
	}
	return slices.IndexFunc(c, func(l Link) bool { return bytes.Equal(l.Key, key) })
}

// Next is the chain that goes on from its last key, of which this is the private one, to another. The oldest keys fall off one that
// is full.
func (c Chain) Next(last ed25519.PrivateKey, next ed25519.PublicKey) Chain {
	public, _ := last.Public().(ed25519.PublicKey)
	if len(c) == 0 {
		c = Chain{{Key: public}}
	}
	c = append(slices.Clone(c), Link{Key: next, Signature: ed25519.Sign(last, linked(next))})
	return c[max(0, len(c)-MaxChain):]
}

// Equal is true for two chains of the same keys.
func (c Chain) Equal(other Chain) bool {
	return slices.EqualFunc(c, other, func(a, b Link) bool { return bytes.Equal(a.Key, b.Key) })
}

// EncodeKey writes a public key as ParseKey reads it.
func EncodeKey(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }

// ErrKey is returned for a text that is no public key.
var ErrKey = errors.New("not an Ed25519 public key in base64")

// ParseKey reads a public key.
func ParseKey(text string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, ErrKey
	}
	return key, nil
}

func linked(key []byte) []byte { return append([]byte(linkPurpose), key...) }
