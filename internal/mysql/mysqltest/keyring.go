// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysqltest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Encrypted is what my.cnf of an encrypted site holds.
var Encrypted = []string{
	"default_table_encryption=ON", "table_encryption_privilege_check=ON", "innodb_redo_log_encrypt=ON",
	"innodb_undo_log_encrypt=ON", "binlog_encryption=ON", "binlog_rotate_encryption_master_key_at_startup=OFF",
}

// Names below a server's folder. keyringParts is laid over the directories of mysqld and of its plugins; sealedMark has
// the keyring mounted read-only.
const (
	keyringParts = "keyring.d"
	sealedMark   = keyringParts + "/sealed"
	keyringFile  = "keyring/keyring"
)

// prepareKeyring makes what an encrypted server needs in its folder: before its first start there is no keyring.
func prepareKeyring(dir string, readOnly bool) error {
	flag := "false"
	if readOnly {
		flag = "true"
	}
	for name, text := range map[string]string{
		"sbin/mysqld.my":                    `{"components": "file://component_keyring_file"}`,
		"plugin/component_keyring_file.cnf": `{"path": "` + home + "/" + keyringFile + `", "read_only": ` + flag + `}`,
	} {
		path := filepath.Join(dir, keyringParts, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // mysqld's user reads it
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // no secret: mysqld reads it
			return err
		}
	}
	ring := filepath.Join(dir, filepath.Dir(keyringFile))
	if err := os.MkdirAll(ring, 0o700); err != nil {
		return err
	}
	return os.Chown(ring, uid, uid)
}

// mountKeyring is the part of the script of inRootfs that lays the keyring's parts in place. $1 is the server's folder, $2
// the root file system.
const mountKeyring = `if [ -d "$1/` + keyringParts + `" ]; then ` +
	`mount -t overlay overlay -o "lowerdir=$1/` + keyringParts + `/sbin:$2/usr/sbin" "$2/usr/sbin" && ` +
	`mount -t overlay overlay -o "lowerdir=$1/` + keyringParts + `/plugin:$2/usr/lib/mysql/plugin" "$2/usr/lib/mysql/plugin" || exit 1; fi; ` +
	`if [ -e "$1/` + sealedMark + `" ]; then ` +
	`mount --bind "$1/keyring" "$2` + home + `/keyring" && mount -o remount,bind,ro "$2` + home + `/keyring" || exit 1; fi; `

// Keyring is the path of the keyring file on this machine.
func (s *Server) Keyring() string { return filepath.Join(s.Dir, keyringFile) }

// Seal makes mysqld start again with its keyring mounted read-only, or writable.
func (s *Server) Seal(t testing.TB, sealed bool) {
	t.Helper()
	s.Kill(t, func() {
		mark := filepath.Join(s.Dir, sealedMark)
		err := os.Remove(mark)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if sealed {
			err = os.WriteFile(mark, nil, 0o600)
		}
		if err := errors.Join(err, prepareKeyring(s.Dir, sealed)); err != nil {
			t.Errorf("seal: %v", err)
		}
	})
}

// ConfigureReadOnly makes mysqld start again with a component that is configured as read-only, on a file that can be written.
func (s *Server) ConfigureReadOnly(t testing.TB) {
	t.Helper()
	s.Kill(t, func() {
		if err := prepareKeyring(s.Dir, true); err != nil {
			t.Errorf("configure: %v", err)
		}
	})
}
