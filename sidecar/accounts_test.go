// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

func accountDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestEveryPasswordIsTriedI21: those of the Secret in the pod as it is now, and those that were in it before: whatever a person does to the
// Secret, a fence by SQL stays possible.
func TestEveryPasswordIsTriedI21(t *testing.T) {
	dir := accountDir(t, map[string]string{"sidecar": "edited\n", "sidecar-known": "known", "sidecar-next": "next", "sidecar-previous": "former", "serial": "7"})
	a, err := newAccount(dir)
	if err != nil {
		t.Fatal(err)
	}
	tried := func() string { return strings.Join(a.passwords(t.Context(), false), " ") }
	if got := tried(); got != "known edited next former" {
		t.Errorf("tried: %s", got)
	}
	if a.serial() != 7 || a.passwords(t.Context(), true) != nil {
		t.Error("the serial, or what is tried anew")
	}
	for _, name := range []string{"sidecar-known", "sidecar-next", "sidecar-previous", "serial"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sidecar"), []byte("replaced"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tried(); got != "replaced known edited next former" || a.serial() != 0 {
		t.Errorf("tried after the Secret was replaced: %s", got)
	}
	if got := a.probePasswords(t.Context(), false); got[1] != mysql.ProbePassword("known") {
		t.Error("the write probe does not follow")
	}
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(dir, "sidecar"), []byte{byte('a' + i)}, 0o600); err != nil {
			t.Fatal(err)
		}
		tried()
	}
	if n := len(a.passwords(t.Context(), false)); n != rememberedPasswords {
		t.Errorf("%d passwords are remembered", n)
	}
	if _, err := newAccount(t.TempDir()); err == nil {
		t.Error("a pod without a password was accepted")
	}
}
