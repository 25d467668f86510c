// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
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
