// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

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
	if err := os.WriteFile(filepath.Join(dir, "sidecar-known"), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := a.passwords(t.Context(), false); !slices.Contains(got, "known") {
		t.Errorf("I21: what was there at the start is not tried: %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "sidecar-known"), []byte("known"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.remembered = nil
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

// TestOnlyAPasswordThatWasTakenIsReportedI21: the operator retires the former one once every sidecar has said so.
func TestOnlyAPasswordThatWasTakenIsReportedI21(t *testing.T) {
	for name, tc := range map[string]struct {
		files     map[string]string
		taken     bool
		err       error
		meanwhile string
		with      string
		want      int64
	}{
		"taken":                      {map[string]string{"serial": "7"}, true, nil, "", "edited", 7},
		"taken, the operator's copy": {map[string]string{"serial": "7", "sidecar-known": "known"}, true, nil, "", "known", 7},
		"refused":                    {map[string]string{"serial": "7"}, false, nil, "", "edited", 0},
		"nobody answered":            {map[string]string{"serial": "7"}, true, errors.New("down"), "", "edited", 0},
		"a Secret without a number":  {nil, true, nil, "", "", 0},
		"a number that is none":      {map[string]string{"serial": "99999999999999999999"}, true, nil, "", "", 0},
		"replaced while it was read": {map[string]string{"serial": "7"}, true, nil, "8", "", 0},
	} {
		dir := accountDir(t, map[string]string{"sidecar": "edited"})
		for file, text := range tc.files {
			write(t, filepath.Join(dir, file), text, 0o600)
		}
		own, err := newAccount(dir)
		if err != nil {
			t.Fatal(err)
		}
		if tc.meanwhile != "" { // it is read once, and blocks who reads it until it is replaced
			replacedOnceRead(t, filepath.Join(dir, passwordFiles[0]), filepath.Join(dir, serialFile), tc.meanwhile)
		}
		with, logged := "", 0
		l := &logins{account: own, log: slog.New(slog.DiscardHandler), accepts: func(_ context.Context, target mysql.Target) (bool, error) {
			with, logged = target.Password, logged+1
			return tc.taken, tc.err
		}}
		l.look(t.Context())
		var got int64
		if r := l.Report(); r != nil {
			got = r.Serial
		}
		if got != tc.want || with != tc.with {
			t.Errorf("I21: %s: reported %d, logged in with %q", name, got, with)
		}
		if l.look(t.Context()); tc.want > 0 && logged != 1 {
			t.Errorf("%s: it logged in %d times with the same password", name, logged)
		}
		if write(t, filepath.Join(dir, serialFile), "9", 0o600); tc.want > 0 {
			if l.look(t.Context()); l.Report().Serial != 9 {
				t.Errorf("I21: %s: the next one goes unnoticed", name)
			}
		}
	}
}

// replacedOnceRead makes a pipe of a file: who reads it waits until another file was replaced.
func replacedOnceRead(t *testing.T, pipe, other, text string) {
	t.Helper()
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
		if err == nil {
			err = errors.Join(os.WriteFile(other, []byte(text), 0o600), os.Remove(pipe), f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}()
}

// TestANewPasswordIsLookedForAsLongAsItRuns.
func TestANewPasswordIsLookedForAsLongAsItRuns(t *testing.T) {
	dir := accountDir(t, map[string]string{"sidecar": "x", "serial": "1"})
	synctest.Test(t, func(t *testing.T) {
		own, err := newAccount(dir)
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		l := &logins{account: own, log: slog.New(slog.DiscardHandler), accepts: func(context.Context, mysql.Target) (bool, error) { looks++; return false, nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 4*accountsInterval+time.Millisecond)
		defer cancel()
		l.run(ctx)
		if looks != 5 {
			t.Errorf("%d looks", looks)
		}
	})
}
