// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// A restored directory becomes the site's; half of one, or none where one belongs, never becomes an empty database.
func TestRestored(t *testing.T) {
	fresh := func() settings {
		dir := t.TempDir()
		s := settings{stateDir: filepath.Join(dir, "mfg"), datadir: filepath.Join(dir, "data"), runDir: dir, restore: true}
		if err := os.MkdirAll(s.stateDir, 0o700); err != nil {
			t.Fatal(err)
		}
		return s
	}
	whole := func(s settings) {
		dir := s.datadir + restoredSuffix
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "auto.cnf"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	refused := func(name string, s settings, want error) {
		t.Helper()
		if err := bootstrap(t.Context(), s, log); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(s.stateDir, markerFile)); err == nil {
			t.Errorf("%s: taken for initialised", name)
		}
	}
	refused("nothing was loaded", fresh(), errRestoreGone)
	for _, dir := range []string{"", restoredSuffix} {
		strange := fresh()
		write(t, filepath.Join(strange.datadir+dir, "ibdata1"), "", 0o600)
		refused("what no load leaves, and a new pod would find too, in data"+dir, strange, errNotRestored)
	}
	half := fresh()
	whole(half)
	if err := os.WriteFile(half.datadir+restoredSuffix+loadingSuffix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("half a load", half, errNotRestored)
	half.restore = false
	refused("half a load, and nobody says that there was one", half, errNotRestored)

	s := fresh()
	whole(s)
	if taken, err := takeRestored(s); !taken || err != nil {
		t.Fatalf("%t, %v", taken, err)
	}
	// A crash here leaves the marker and no data directory: the next start takes it.
	for range 2 {
		if err := checkData(s, log); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.datadir, "auto.cnf")); err != nil {
		t.Error(err)
	}
}

// I25: where a restore is lost with its keyring before that was in escrow, no empty database comes in its place, whatever happens between
// the steps; only what is loaded again does. Every start says so in the words by which the operator knows that only a new pod loads it: it
// may miss any one of them.
func TestARestoreThatIsLostIsNeverEmptyI25(t *testing.T) {
	s := encryptedVolume(t)
	s.restore = true
	load := func(id string) {
		t.Helper()
		write(t, filepath.Join(s.datadir+restoredSuffix, "auto.cnf"), "", 0o600)
		write(t, s.keyring.file, keyringText(id), 0o600)
	}
	load("first")
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if made := record(t, s); !made.Made || made.Needs != wire.KeyringDigest([]byte(keyringText("first"))) {
		t.Errorf("noted: %+v", made)
	}
	lost := func(name string) {
		t.Helper()
		if _, err := boot(t, s); err == nil || !strings.Contains(err.Error(), wire.MarkRestoreLost) {
			t.Fatalf("I25: %s: %v", name, err)
		}
	}
	emptyPlace(t, s) // the pod is replaced, and nothing was in escrow
	for range 3 {
		lost("a start without the keyring")
		for _, path := range []string{s.datadir, filepath.Join(s.stateDir, markerFile), filepath.Join(s.stateDir, wipingFile)} {
			if there, err := exists(path); there || err != nil {
				t.Errorf("%s is there: %t, %v", path, there, err)
			}
		}
	}
	load("second")
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if live(t, s) != keyringText("second") {
		t.Errorf("the keyring is %s", live(t, s))
	}
	// The crash between the wipe and the end of it, with another load behind it.
	emptyPlace(t, s)
	if err := writeDurable(filepath.Join(s.stateDir, wipingFile)); err != nil {
		t.Fatal(err)
	}
	load("third")
	for range 3 {
		lost("a wipe that was begun")
	}
	load("fourth")
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if there, err := exists(filepath.Join(s.datadir, "auto.cnf")); !there || err != nil || live(t, s) != keyringText("fourth") {
		t.Errorf("taken: %t, %v, %s", there, err, live(t, s))
	}
	// The crash between the marker and the name, and the keyring is lost: the whole directory stays, and nothing opens it.
	if err := os.Rename(s.datadir, s.datadir+restoredSuffix); err != nil {
		t.Fatal(err)
	}
	emptyPlace(t, s)
	for range 3 {
		lost("a directory that waits for its name")
	}
	load("fifth")
	if _, err := boot(t, s); err != nil || live(t, s) != keyringText("fifth") {
		t.Errorf("%v, %s", err, live(t, s))
	}
	// Without a restore all is as ever: what was never open is made again.
	s.restore = false
	emptyPlace(t, s)
	if _, err := boot(t, s); err != nil {
		t.Error(err)
	}
}
