// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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
	refused := func(name string, s settings) {
		t.Helper()
		if err := bootstrap(t.Context(), s, log); !errors.Is(err, errNotRestored) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(s.stateDir, markerFile)); err == nil {
			t.Errorf("%s: taken for initialised", name)
		}
	}
	refused("nothing was loaded", fresh())
	half := fresh()
	whole(half)
	if err := os.WriteFile(half.datadir+restoredSuffix+loadingSuffix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("half a load", half)
	half.restore = false
	refused("half a load, and nobody says that there was one", half)

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
// the steps; only what is loaded again does.
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
	emptyPlace(t, s) // the pod is replaced, and nothing was in escrow
	for range 2 {
		if _, err := boot(t, s); !errors.Is(err, errRestoreLost) && !errors.Is(err, errNotRestored) {
			t.Fatalf("a start without the keyring: %v", err)
		}
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
	if _, err := boot(t, s); !errors.Is(err, errRestoreLost) {
		t.Fatalf("a wipe that was begun: %v", err)
	}
	load("fourth")
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if there, err := exists(filepath.Join(s.datadir, "auto.cnf")); !there || err != nil || live(t, s) != keyringText("fourth") {
		t.Errorf("taken: %t, %v, %s", there, err, live(t, s))
	}
	// Without a restore all is as ever: what was never open is made again.
	s.restore = false
	emptyPlace(t, s)
	if _, err := boot(t, s); err != nil {
		t.Error(err)
	}
}
