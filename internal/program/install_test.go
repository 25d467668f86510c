// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInstallCopiesAProgram(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "program")
	if err := Install(dest); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dest)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := Install(dest); err != nil {
		t.Errorf("over an older one: %v", err)
	}
	if got, err := os.ReadDir(filepath.Dir(dest)); err != nil || len(got) != 1 {
		t.Errorf("something is left: %v, %v", got, err)
	}
	if err := Install(filepath.Join(dest, "below")); err == nil {
		t.Error("installed nowhere")
	}
	// It cannot take the place of a directory, and leaves nothing beside it.
	if err := os.Mkdir(filepath.Join(filepath.Dir(dest), "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Install(filepath.Join(filepath.Dir(dest), "taken")); err == nil {
		t.Error("installed over a directory")
	}
	if got, err := os.ReadDir(filepath.Dir(dest)); err != nil || len(got) != 2 {
		t.Errorf("half a program is left: %v, %v", got, err)
	}
}
