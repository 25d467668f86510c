// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// stored makes a backup of a group in a folder, at a time.
func stored(t *testing.T, place bucket.Config, name, uid string, at time.Time) {
	t.Helper()
	b, err := bucket.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: name, UID: uid, Now: at})
	if err != nil {
		t.Fatal(err)
	}
	part, err := w.Part(t.Context(), terms.PartDump)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte("a dump")); err != nil {
		t.Fatal(err)
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = w.Commit(t.Context(), bucket.Manifest{GroupUID: uid, Profile: "nightly", Method: bucket.Logical, Site: "c", MySQLVersion: "9.7.4", StartedAt: at, FinishedAt: at})
	if err != nil {
		t.Fatal(err)
	}
}

// told runs a command, and returns its reason and its output.
func told(t *testing.T, c terms.Config, command string) (int, string) {
	t.Helper()
	out := &bytes.Buffer{}
	p := &Program{Out: out, Log: slog.New(slog.DiscardHandler), Config: c}
	return p.Run(t.Context(), command), out.String()
}

func objectsIn(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "/backups/") {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A group of the same name in another cluster gives its backups the same names. Its attempts are refused, and what it removes then, with its
// MysqlBackups that failed, is nothing of the other's.
func TestNothingOfAnotherGroupIsRemoved(t *testing.T) {
	now := time.Now()
	later := now.Add(time.Hour)
	for name, tc := range map[string]struct {
		uid       string
		notBefore *time.Time
		gone      bool
	}{
		"its own":                       {uid: "ours", gone: true},
		"its own, asked for before":     {uid: "ours", notBefore: &now, gone: true},
		"told by nobody whose":          {gone: true},
		"another group's":               {uid: "theirs"},
		"kept from an earlier one":      {uid: "ours", notBefore: &later},
		"another group's, and an older": {uid: "theirs", notBefore: &later},
	} {
		t.Run(name, func(t *testing.T) {
			place := bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"}
			stored(t, place, "monday", "ours", now)
			code, said := told(t, terms.Config{Bucket: place, Backup: "monday", GroupUID: tc.uid, NotBefore: tc.notBefore}, "delete")
			if left := objectsIn(t, place.Folder); code != terms.ExitSucceeded || (left == 0) != tc.gone {
				t.Errorf("code %d, %d objects are left: %s", code, left, said)
			}
			if !tc.gone && !strings.Contains(said, "stays") {
				t.Errorf("it does not say that it stays: %s", said)
			}
		})
	}
}

// What an attempt of another group has stored so far is no leftover of ours, by its name or in a sweep.
func TestNoAttemptOfAnotherGroupIsSwept(t *testing.T) {
	place := bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"}
	b, err := bucket.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: "monday", UID: "theirs", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	part, err := w.Part(t.Context(), terms.PartDump)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-48 * time.Hour)
	err = filepath.WalkDir(place.Folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return os.Chtimes(path, old, old)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"sweep", "delete"} {
		c := terms.Config{Bucket: place, GroupUID: "ours", Backup: "monday"}
		if code, said := told(t, c, command); code != terms.ExitSucceeded || objectsIn(t, place.Folder) != 1 {
			t.Fatalf("%s: code %d, %d objects: %s", command, code, objectsIn(t, place.Folder), said)
		}
	}
	if code, said := told(t, terms.Config{Bucket: place, GroupUID: "theirs"}, "sweep"); code != terms.ExitSucceeded || objectsIn(t, place.Folder) != 0 {
		t.Errorf("its own are not swept: code %d: %s", code, said)
	}
}

// I23: a backup that was kept from an earlier MysqlBackup of the name is not the one that is asked for now, and one of which something is gone is none.
func TestABackupThatIsThereAndIsNotThisOneI23(t *testing.T) {
	now := time.Now()
	soon, later := now.Add(time.Minute), now.Add(time.Hour)
	for name, tc := range map[string]struct {
		notBefore *time.Time
		harm      bool
		want      int
	}{
		"its own":                  {notBefore: &soon, want: terms.ExitSucceeded},
		"kept from an earlier one": {notBefore: &later, want: terms.ExitStorage},
		"something of it is gone":  {notBefore: &now, harm: true, want: terms.ExitDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			place := bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"}
			stored(t, place, "monday", "ours", now)
			if tc.harm {
				found, err := filepath.Glob(filepath.Join(place.Folder, "shop/orders/backups/monday/*/dump.00000"))
				if err != nil || len(found) != 1 {
					t.Fatalf("%v: %v", found, err)
				}
				if err := os.Remove(found[0]); err != nil {
					t.Fatal(err)
				}
			}
			code, said := told(t, terms.Config{
				Bucket: place, Backup: "monday", GroupUID: "ours", Profile: "nightly", Method: bucket.Logical, NotBefore: tc.notBefore,
				Source: terms.Source{Host: "nowhere.invalid", Port: 3306, User: "u", PasswordFile: "none"}, Server: terms.Server{RunDir: t.TempDir()},
			}, "make")
			if code != tc.want {
				t.Errorf("code %d: %s", code, said)
			}
		})
	}
}
