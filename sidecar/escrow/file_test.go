// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// ring is a keyring as component_keyring_file writes it.
func ring(ids ...string) string {
	var elements []string
	for _, id := range ids {
		data := strings.ToUpper(hex.EncodeToString([]byte("key bytes of " + id)))
		elements = append(elements, fmt.Sprintf(`{"user":"","data_id":%q,"data_type":"AES","data":%q,"extension":[]}`, id, data))
	}
	return `{"version":"1.0","elements":[` + strings.Join(elements, ",") + `]}`
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLookAt(t *testing.T) {
	whole := ring("INNODBKey-u-1", "MySQLReplicationKey_u")
	for name, tc := range map[string]struct {
		reason  string
		content string
		backup  bool
		want    error
	}{
		"whole":      {"nothing is amiss", whole, false, nil},
		"missing":    {"mysqld would make an empty one", "", false, fs.ErrNotExist},
		"torn":       {"half of it would be escrowed", whole[:len(whole)/2], false, ErrNotAKeyring},
		"truncated":  {"MySQL truncates before it writes", " ", false, ErrNotAKeyring},
		"empty":      {"it opens no data", ring(), false, ErrEmpty},
		"no element": {"it is another document", `{"version":"1.0","elements":[{}]}`, false, ErrNotAKeyring},
		"no name":    {"MySQL would not find it", `{"version":"1.0","elements":[{"data":"AB"}]}`, false, ErrNotAKeyring},
		"no key":     {"it opens nothing", `{"version":"1.0","elements":[{"data_id":"k"}]}`, false, ErrNotAKeyring},
		"half keys":  {"part of it is something else", `{"version":"1.0","elements":[{"data_id":"k","data":"AB"},7]}`, false, ErrNotAKeyring},
		"no version": {"it is another document", `{"elements":[{"data_id":"k","data":"AB"}]}`, false, ErrNotAKeyring},
		"other JSON": {"it is another document", `{"kind":"Secret"}`, false, ErrNotAKeyring},
		"writing":    {"MySQL may be in the middle of it", whole, true, ErrBackup},
		"too large":  {"the operator would refuse it", ring(strings.Repeat("k", wire.MaxKeyringFile)), false, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "keyring")
			if tc.content != "" {
				put(t, file, tc.content)
			}
			if tc.backup {
				put(t, file+backupSuffix, ring("INNODBKey-u-1"))
			}
			got, err := LookAt(file)
			if err != nil || !errors.Is(got.Flaw, tc.want) || got.Whole() != (tc.want == nil) {
				t.Errorf("%s: %v, %v", tc.reason, got.Flaw, err)
			}
			if got.Exists() != (tc.content != "") {
				t.Errorf("exists is %v", got.Exists())
			}
		})
	}
}

// TestWhatCannotBeLookedAtIsNotWholeI16: neither the file, nor whether MySQL is writing it.
func TestWhatCannotBeLookedAtIsNotWholeI16(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("k", 255)) // its copy can have no name
	put(t, long, ring("k"))
	for path, want := range map[string]error{long: unix.ENAMETOOLONG, dir: unix.EISDIR} {
		if got, err := LookAt(path); !errors.Is(err, want) || got.Exists() {
			t.Errorf("I16: %s, %v, want %v", got, err, want)
		}
	}
}

// TestAKeyOfAnotherOwnerIsAnotherKey: two may have the same name.
func TestAKeyOfAnotherOwnerIsAnotherKey(t *testing.T) {
	l := Look{Keys: []mysql.Key{{ID: "k", Owner: "a"}}}
	for owner, lacks := range map[string]bool{"a": false, "b": true, "": true} {
		if got := l.lacks([]mysql.Key{{ID: "k", Owner: owner}}); got != lacks {
			t.Errorf("of %q: lacks is %t", owner, got)
		}
	}
}

// performance_schema cuts long names off, and not short ones.
func TestLongNamesAreListedInPart(t *testing.T) {
	const long = "MySQLReplicationKey_e2cc30e8-e4f9-11f1-9104-f2c506cbe82a_last_purged"
	l := Look{Keys: []mysql.Key{{ID: long}, {ID: "INNODBKey-u-12"}}}
	for name, tc := range map[string]struct {
		listed string
		lacks  bool
	}{
		"whole": {long, false}, "cut off": {long[:listedAtMost], false}, "shorter": {long[:listedAtMost-1], true},
		"the beginning of another": {"INNODBKey-u-1", true}, "another": {strings.Repeat("x", listedAtMost), true},
	} {
		if got := l.lacks([]mysql.Key{{ID: tc.listed}}); got != tc.lacks {
			t.Errorf("%s: lacks is %v", name, got)
		}
	}
}

func TestPlaceIn(t *testing.T) {
	const (
		base  = "22 1 0:40 / / rw,relatime - overlay overlay rw\n"
		ro    = "30 22 0:51 / /run/mysql-keyring ro,relatime - tmpfs tmpfs rw\n"
		rw    = "30 22 0:51 / /run/mysql-keyring rw,relatime - tmpfs tmpfs rw\n"
		other = "30 22 0:52 / /run/mysql-keyring ro,relatime - tmpfs tmpfs rw\n"
		sub   = "30 22 0:51 /elsewhere /run/mysql-keyring ro,relatime - tmpfs tmpfs rw\n"
		above = "31 22 0:53 / /run rw - tmpfs tmpfs rw\n"
		atop  = "31 30 0:53 / /run/mysql-keyring rw - tmpfs tmpfs rw\n"
		again = "31 30 0:51 / /run/mysql-keyring ro,relatime - tmpfs tmpfs rw\n"
		file  = "31 30 0:53 /x /run/mysql-keyring/keyring rw - ext4 /dev/sda rw\n"
		near  = "31 22 0:53 / /run/mysql-keyring-other rw - tmpfs tmpfs rw\n"
	)
	for name, tc := range map[string]struct {
		reason, own, theirs string
		want                bool
	}{
		"sealed":            {"the same volume, read-only for mysqld", base + ro, base + ro, true},
		"own is writable":   {"only mysqld's mount counts", base + rw, base + ro + near, true},
		"unsealed":          {"mysqld can write", base + ro, base + rw, false},
		"no volume":         {"mysqld sees its image", base + ro, base, false},
		"another volume":    {"mysqld sees another file", base + ro, base + other, false},
		"another folder":    {"mysqld sees another file", base + ro, base + sub, false},
		"hidden by /run":    {"what was mounted later is seen", base + ro, base + ro + above, false},
		"mounted over":      {"what was mounted later is seen", base + ro, base + ro + atop, false},
		"mounted twice":     {"which of the two is seen is not to be told from here", base + ro, base + ro + again, false},
		"file mounted over": {"mysqld sees another file", base + ro, base + ro + file, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "own"), tc.own)
			put(t, filepath.Join(dir, "theirs"), tc.theirs)
			got, _ := readOnlyIn("/run/mysql-keyring/keyring", filepath.Join(dir, "own"), filepath.Join(dir, "theirs"))
			if got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
	if (Mounts{Root: "/proc"}).ReadOnly("/proc/self/stat", nil) {
		t.Error("without a mysqld nothing is proven")
	}
	if file := filepath.Join(t.TempDir(), "keyring"); true {
		put(t, file, "x")
		if (Mounts{Root: "/proc"}).ReadOnly(file, []int{os.Getpid()}) {
			t.Error("this process can write it")
		}
	}
}
