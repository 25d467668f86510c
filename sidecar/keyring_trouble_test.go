// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/agent"
	"github.com/mysql-mfg/mfg/sidecar/escrow"
)

// unprivileged does something for which the modes of files count, also if root runs the tests.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		err := unix.Capget(&header, &caps[0])
		caps[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
		if err = errors.Join(err, unix.Capset(&header, &caps[0])); err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// occupy puts something in the way of a file that can neither be read nor removed.
func occupy(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "x"), "", 0o600)
}

// TestWhatCannotBeReadIsNoKeyringI14: nothing starts, and nothing is given up, on a look that failed.
func TestWhatCannotBeReadIsNoKeyringI14(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	prepare := func(s settings) error { _, err := prepareKeyring(s, true, log); return err }
	made := keyringText("made-")
	lost := func(t *testing.T, s settings) {
		t.Helper()
		statement(t, s, "b")
		change(t, s, func(r *escrow.Record) { r.Escrowed, r.Needs = r.Needs, "sha256:new" })
	}
	for name, tc := range map[string]struct {
		change func(*testing.T, *settings)
		do     func(settings) error
		want   error
	}{
		"whether it is being given up, sealed": {func(t *testing.T, s *settings) {
			t.Helper()
			s.keyring.sealed = true
			write(t, s.keyring.file, made, 0o600)
			s.stateDir = filepath.Join(s.keyring.file, "none")
		}, prepare, unix.ENOTDIR},
		"a sealed keyring": {func(t *testing.T, s *settings) { t.Helper(); s.keyring.sealed = true; occupy(t, s.keyring.file) }, prepare, unix.EISDIR},
		"a keyring":        {func(t *testing.T, s *settings) { t.Helper(); occupy(t, s.keyring.file) }, prepare, unix.EISDIR},
		"a new keyring":    {func(t *testing.T, s *settings) { t.Helper(); occupy(t, s.keyring.file) }, keyringMade, unix.EISDIR},
		"what is left of one, of a new volume": {func(t *testing.T, s *settings) { t.Helper(); occupy(t, s.keyring.file+".backup") },
			func(s settings) error { _, err := prepareKeyring(s, false, log); return err }, unix.EEXIST},
		"what is left of one": {func(t *testing.T, s *settings) { t.Helper(); occupy(t, s.keyring.file) }, freshKeyring, unix.EEXIST},
		"a seed":              {func(t *testing.T, s *settings) { t.Helper(); seed(t, s, made); occupy(t, s.keyring.seed) }, plant, unix.EISDIR},
		"a seed that goes":    {func(t *testing.T, s *settings) { t.Helper(); pipe(t, s, made) }, plant, os.ErrNotExist},
		"a seed that changes": {func(t *testing.T, s *settings) { t.Helper(); pipe(t, s, made, keyringText("other")) }, plant, errSeedDigest},
		"a seed that stays":   {func(t *testing.T, s *settings) { t.Helper(); pipe(t, s, made, made) }, plant, nil},
		"half a place":        {func(t *testing.T, s *settings) { t.Helper(); seed(t, s, made); occupy(t, s.keyring.file+".seed") }, plant, unix.EISDIR},
		"no place":            {func(t *testing.T, s *settings) { t.Helper(); seed(t, s, made); occupy(t, s.keyring.file) }, plant, unix.EEXIST},
		"its record": {func(t *testing.T, s *settings) {
			t.Helper()
			write(t, filepath.Join(s.stateDir, "keyring.json"), "{", 0o600)
		}, mayWipe, escrow.ErrRecord},
		"the round, not kept": {func(t *testing.T, s *settings) {
			t.Helper()
			_ = os.Remove(filepath.Join(s.stateDir, "keyring.json"))
			s.keyring.work, s.keyring.round = workClone, "uid/6"
			occupy(t, filepath.Join(s.stateDir, "keyring.json.tmp"))
		}, prepare, unix.EISDIR},
		"the mark of a wipe, not kept": {func(t *testing.T, s *settings) {
			t.Helper()
			lost(t, *s)
			if err := os.Chmod(s.stateDir, 0o500); err != nil {
				t.Fatal(err)
			}
		}, func(s settings) (err error) {
			unprivileged(t, func() { err = prepare(s) })
			return errors.Join(err, os.Chmod(s.stateDir, 0o700))
		}, os.ErrPermission},
		"what is left of a lost one": {func(t *testing.T, s *settings) {
			t.Helper()
			lost(t, *s)
			occupy(t, s.keyring.file+".seed")
			seed(t, s, made)
		}, prepare, unix.EISDIR},
		"the name of the volume": {func(t *testing.T, s *settings) { t.Helper(); occupy(t, filepath.Join(s.stateDir, "volume-id")) },
			func(s settings) error { return wipeIf(s, true, log) }, unix.ENOTEMPTY},
		"the record of what goes": {func(t *testing.T, s *settings) { t.Helper(); occupy(t, filepath.Join(s.stateDir, "keyring.json")) },
			func(s settings) error { return wipeIf(s, true, log) }, unix.ENOTEMPTY},
		"the data that goes": {func(_ *testing.T, s *settings) { s.datadir += "/." }, func(s settings) error { return wipeIf(s, true, log) }, unix.EINVAL},
		"the mark of a wipe": {func(t *testing.T, s *settings) { t.Helper(); occupy(t, filepath.Join(s.stateDir, wipingFile)) }, endWipe, unix.ENOTEMPTY},
	} {
		t.Run(name, func(t *testing.T) {
			s := booted(t)
			emptyPlace(t, s)
			tc.change(t, &s)
			err := tc.do(s)
			if !errors.Is(err, tc.want) && (!errors.Is(tc.want, unix.EEXIST) || !errors.Is(err, unix.ENOTEMPTY)) {
				t.Errorf("I14: got %v, want %v", err, tc.want)
			}
			if there, _ := exists(filepath.Join(s.datadir, "auto.cnf")); !there && strings.Contains(name, "not kept") {
				t.Error("I14: the data is gone")
			}
		})
	}
}

// pipe makes a seed that holds one content after the other, and is gone after that.
func pipe(t *testing.T, s *settings, contents ...string) {
	t.Helper()
	seed(t, s, contents[0])
	if err := errors.Join(os.Remove(s.keyring.seed), unix.Mkfifo(s.keyring.seed, 0o600)); err != nil {
		t.Fatal(err)
	}
	path := s.keyring.seed
	go func() {
		for i, content := range contents {
			f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for who reads it
			if err != nil {
				t.Error(err)
				return
			}
			_, err = f.WriteString(content)
			// The next one is another pipe: who has read this one must not go on with what is meant for the next.
			err = errors.Join(err, os.Remove(path))
			if i+1 < len(contents) {
				err = errors.Join(err, unix.Mkfifo(path, 0o600))
			}
			if err = errors.Join(err, f.Close()); err != nil {
				t.Error(err)
			}
		}
	}()
}

// TestASealedPodPushesNothingI18, and one without an escrow to push to pushes nowhere.
func TestASealedPodPushesNothingI18(t *testing.T) {
	for name, tc := range map[string]struct {
		keyring keyringSettings
		want    bool
	}{
		"unsealed":          {keyringSettings{file: "f", escrowURL: "https://operator"}, true},
		"sealed":            {keyringSettings{file: "f", escrowURL: "https://operator", sealed: true}, false},
		"without an escrow": {keyringSettings{file: "f"}, false},
	} {
		if c := keyringConfig(settings{keyring: tc.keyring}, agent.Procfs{}); (c.Push != nil) != tc.want || c.Sealed != tc.keyring.sealed {
			t.Errorf("I18: %s: pushes %t, sealed %t", name, c.Push != nil, c.Sealed)
		}
	}
	c := keyringConfig(settings{}, agent.Procfs{Root: "/none"})
	if id, pids := c.Mysqld(); id != "" || len(pids) > 0 {
		t.Errorf("nobody can tell what runs: %q %v", id, pids)
	}
	s := volume(t, initialises)
	k, end, err := watchKeyring(s, agent.Procfs{}, slog.New(slog.DiscardHandler))
	if k != nil || err != nil || keyringOf(k) != nil {
		t.Errorf("without a keyring: %v, %v", k, err)
	}
	end()
	runKeyring(t.Context(), k)()
	s.keyring.file = "f"
	k, end, err = watchKeyring(s, agent.Procfs{}, slog.New(slog.DiscardHandler))
	if k == nil || err != nil || keyringOf(k) == nil {
		t.Fatalf("with one: %v, %v", k, err)
	}
	end()
	s.accountsDir = "/none"
	if _, _, err := watchKeyring(s, agent.Procfs{}, slog.New(slog.DiscardHandler)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without an account: %v", err)
	}
}

// TestTheKeyringIsWatchedUntilTheEnd: who waits for it finds that it has ended.
func TestTheKeyringIsWatchedUntilTheEnd(t *testing.T) {
	s := booted(t)
	db := &answers{asked: make(chan struct{}, 1)}
	config := keyringConfig(s, agent.Procfs{Root: t.TempDir()})
	config.MySQL, config.Log, config.Open = db, slog.New(slog.DiscardHandler), func() bool { return false }
	config.Mysqld = func() (string, []int) { return "1", nil }
	config.Push = func(_ context.Context, push wire.KeyringEscrow) (wire.KeyringEscrowed, error) {
		return wire.KeyringEscrowed{Version: 1, Digest: push.Digest}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait := runKeyring(ctx, escrow.New(config))
	<-db.asked
	cancel()
	wait()
}

// TestWhatIsEncryptedFromTheBeginning: only if that was asked for.
func TestWhatIsEncryptedFromTheBeginning(t *testing.T) {
	s := settings{keyring: keyringSettings{file: "f", coverSystem: true}}
	with := initStatements(s, mysql.Accounts{})
	s.keyring.coverSystem = false
	if without := initStatements(s, mysql.Accounts{}); len(with) == len(without) || !slices.Equal(with[:len(without)], without) {
		t.Errorf("%d statements with encryption, %d without", len(with), len(without))
	}
}
