// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// ErrNoKey is returned while no public key of the authority could be read.
var ErrNoKey = errors.New("no public key of the authority is known")

// Keys are the public keys of the group's authority. The file is read again when it changes, so that the authority can
// be replaced under running sidecars; it may hold the old and the new key at the same time.
type Keys struct {
	path string

	mu   sync.Mutex
	time time.Time
	size int64
	keys []ed25519.PublicKey
}

// NewKeys reads the keys from a PEM file. An unreadable file is not the end: without a key the site stays fenced, and
// the file is looked at again with every statement.
func NewKeys(path string) *Keys { return &Keys{path: path} }

// Verify checks a statement against the keys.
func (k *Keys) Verify(signed wire.Signed) (wire.Statement, error) {
	keys, err := k.current()
	if err != nil {
		return wire.Statement{}, err
	}
	err = ErrNoKey
	for _, key := range keys {
		var s wire.Statement
		if s, err = wire.Verify(key, signed); err == nil {
			return s, nil
		}
	}
	return wire.Statement{}, err
}

// IDs names the keys that a statement may be signed with now.
func (k *Keys) IDs() []string {
	keys, err := k.current()
	if err != nil {
		return nil
	}
	ids := make([]string, 0, len(keys))
	for _, key := range keys {
		ids = append(ids, wire.KeyID(key))
	}
	return ids
}

// current returns the keys of the file as it is now; if it cannot be read, the last ones.
func (k *Keys) current() ([]ed25519.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.path)
	if err == nil && (!info.ModTime().Equal(k.time) || info.Size() != k.size) {
		var keys []ed25519.PublicKey
		if keys, err = readKeys(k.path); err == nil {
			k.time, k.size, k.keys = info.ModTime(), info.Size(), keys
		}
	}
	if len(k.keys) == 0 {
		return nil, errors.Join(ErrNoKey, err)
	}
	return k.keys, nil
}

func readKeys(path string) ([]ed25519.PublicKey, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key of the authority: %w", err)
	}
	var keys []ed25519.PublicKey
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse key of the authority: %w", err)
		}
		key, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("parse key of the authority: %T is not an ed25519 key", parsed)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("parse key of the authority: %s holds no PEM block", path)
	}
	return keys, nil
}
