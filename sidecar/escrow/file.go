// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// backupSuffix is the ending of the copy that MySQL makes before it rewrites a keyring in place, and removes afterwards. While
// the copy exists, the file itself may be half written; mysqld uses the copy as the keyring at its next start.
const backupSuffix = ".backup"

// These errors say why a keyring is not whole. None holds anything of its content.
var (
	// ErrNotAKeyring: the content is not a keyring; MySQL may just be writing it.
	ErrNotAKeyring = errors.New("the file is not a whole keyring")
	// ErrEmpty: a keyring without keys. MySQL makes one if it finds none.
	ErrEmpty = errors.New("the keyring holds no keys")
	// ErrBackup: MySQL is writing it, or died while it was writing.
	ErrBackup = errors.New("MySQL has not finished writing the keyring: its copy lies beside it")
	// ErrKeysMissing: MySQL knows of keys that the file does not hold.
	ErrKeysMissing = errors.New("MySQL lists keys that the file does not hold")
	// ErrTooLarge: the keyring is larger than the operator accepts.
	ErrTooLarge = errors.New("the keyring is too large for the escrow: give the site an empty volume once another site has the role, and it starts with a fresh one")
)

// Look is one look at a keyring's file. Its content stays in here.
type Look struct {
	content []byte
	// Digest is the digest of the bytes in the file, whole or not; empty if there is no file.
	Digest string
	// Keys are the names of the keys.
	Keys []mysql.Key
	// Flaw says why this keyring cannot be escrowed or started from; nil if it is whole.
	Flaw error
}

// Whole is true for a keyring that has keys and is not being written.
func (l Look) Whole() bool { return l.Flaw == nil }

// Exists is true if there is a file, whole or not.
func (l Look) Exists() bool { return l.Digest != "" }

// String never shows the content.
func (l Look) String() string { return "keyring " + l.Digest }

// GoString never shows the content.
func (l Look) GoString() string { return l.String() }

// LookAt reads a keyring. It returns only errors of the file system; a missing file is a Flaw, not an error.
func LookAt(path string) (Look, error) {
	_, err := os.Lstat(path + backupSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Look{}, fmt.Errorf("look for copy of keyring: %w", err)
	}
	writing := err == nil
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Look{Flaw: fmt.Errorf("look at keyring: %w", fs.ErrNotExist)}, nil
	}
	if err != nil {
		return Look{}, fmt.Errorf("read keyring: %w", err)
	}
	l := Look{content: content, Digest: wire.KeyringDigest(content)}
	switch {
	case writing:
		l.Flaw = ErrBackup
	case len(content) > wire.MaxKeyringFile:
		l.Flaw = ErrTooLarge
	default:
		l.Keys, l.Flaw = parse(content)
	}
	return l, nil
}

// parse names the keys of a keyring. It does not return the decoder's errors, because they quote the content.
func parse(content []byte) ([]mysql.Key, error) {
	var file struct {
		Version  string `json:"version"`
		Elements []struct {
			User string `json:"user"`
			ID   string `json:"data_id"`
			Data string `json:"data"`
		} `json:"elements"`
	}
	if err := json.Unmarshal(content, &file); err != nil || file.Version == "" {
		return nil, ErrNotAKeyring
	}
	keys := make([]mysql.Key, 0, len(file.Elements))
	for _, e := range file.Elements {
		if e.ID == "" || e.Data == "" {
			return nil, ErrNotAKeyring
		}
		keys = append(keys, mysql.Key{ID: e.ID, Owner: e.User})
	}
	if len(keys) == 0 {
		return nil, ErrEmpty
	}
	return keys, nil
}

// listedAtMost is the length at which performance_schema.keyring_keys of 9.7.4 cuts a name off: the name that marks purged
// keys of the binary log is longer.
const listedAtMost = 64

// lacks is true if MySQL lists a key that a keyring does not hold.
func (l Look) lacks(listed []mysql.Key) bool {
	return slices.ContainsFunc(listed, func(k mysql.Key) bool {
		return !slices.ContainsFunc(l.Keys, func(held mysql.Key) bool { return isListed(k.ID, held.ID) && isListed(k.Owner, held.Owner) })
	})
}

// isListed is true if a name in MySQL's list may stand for the one in the file.
func isListed(listed, held string) bool {
	return listed == held || len(listed) >= listedAtMost && strings.HasPrefix(held, listed)
}
