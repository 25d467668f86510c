// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/ed25519"
	"sync"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Keys knows whose statements this site takes: those signed with the key that the pod was started with, or with one that a chain
// leads to from there. It reads nothing that could change under a running pod. Once a later key of the chain has signed, it does
// not trust the earlier ones any more: a leaked key becomes useless. The statement on the data volume has the chain too, so this
// also holds after a restart.
type Keys struct {
	mu     sync.Mutex
	anchor ed25519.PublicKey
}

// NewKeys trusts a key.
func NewKeys(anchor ed25519.PublicKey) *Keys { return &Keys{anchor: anchor} }

// Verify checks a statement.
func (k *Keys) Verify(signed wire.Signed) (wire.Statement, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, key, err := wire.VerifyBy(k.anchor, signed)
	if err != nil {
		return wire.Statement{}, err
	}
	k.anchor = key
	return s, nil
}

// Anchor is the key that is trusted now, as wire.EncodeKey writes it.
func (k *Keys) Anchor() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return wire.EncodeKey(k.anchor)
}
