// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"github.com/mysql-mfg/mfg/api/wire"
)

// object keeps the exact names of its members: MySQL distinguishes upper and lower case, and a Go struct would not.
type object map[string]json.RawMessage

// checkContent checks that the pushed content is a keyring with keys, and undamaged. It does not pass on errors of the
// decoder: they repeat parts of what they could not read (I11).
func checkContent(push wire.KeyringEscrow) error {
	if subtle.ConstantTimeCompare([]byte(wire.KeyringDigest(push.Keyring)), []byte(push.Digest)) != 1 {
		return wire.ErrDigestMismatch
	}
	if !isKeyring(push.Keyring) {
		return wire.ErrNotAKeyring
	}
	return nil
}

// isKeyring is true for a file that component_keyring_file of MySQL 9.7 reads (its schema for version 1.0), with at least
// one key. A server sealed with anything else, or with an empty keyring, could never read its data again.
func isKeyring(content []byte) bool {
	var file object
	var elements []object
	if !utf8.Valid(content) || json.Unmarshal(content, &file) != nil || json.Unmarshal(file["elements"], &elements) != nil {
		return false
	}
	if version, ok := text(file["version"]); !ok || version == "" || len(elements) == 0 {
		return false
	}
	for _, element := range elements {
		if !isKey(element) {
			return false
		}
	}
	return true
}

// isKey is true for a key that MySQL can use. The server's own keys belong to no user.
func isKey(element object) bool {
	var extension []json.RawMessage
	if json.Unmarshal(element["extension"], &extension) != nil || extension == nil {
		return false
	}
	if _, ok := text(element["user"]); !ok {
		return false
	}
	for _, name := range []string{"data_id", "data_type", "data"} {
		if value, ok := text(element[name]); !ok || value == "" {
			return false
		}
	}
	data, _ := text(element["data"])
	_, err := hex.DecodeString(data)
	return err == nil
}

// text decodes a string; null is no string.
func text(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}
