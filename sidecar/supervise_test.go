// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// script writes a program that stands for mysqld and counts its starts in a file.
func script(t *testing.T, body string) (argv []string, starts func() int) {
	t.Helper()
	dir := t.TempDir()
	path, counted := filepath.Join(dir, "mysqld"), filepath.Join(dir, "starts")
	write(t, path, "#!/bin/sh\necho \"$MYSQLD_PARENT_PID\" >> "+counted+"\n"+body, 0o700)
	return []string{path}, func() int {
		raw, _ := os.ReadFile(counted)
		for line := range strings.Lines(string(raw)) {
			if strings.TrimSpace(line) != strconv.Itoa(os.Getpid()) {
				t.Errorf("MYSQLD_PARENT_PID is %q, want the supervisor", line)
			}
		}
		return strings.Count(string(raw), "\n")
	}
}

func TestMysqldIsStartedAgainUntilItKeepsEnding(t *testing.T) {
	run := t.TempDir()
	write(t, filepath.Join(run, "mysqld.sock.lock"), "1\n", 0o600)
	argv, starts := script(t, "exit 16\n")
	var log bytes.Buffer
	if err := supervise(run, argv, slog.New(slog.NewTextHandler(&log, nil))); err == nil {
		t.Error("a mysqld that keeps ending is not left to the kubelet")
	}
	if n := starts(); n != quickExits {
		t.Errorf("%d starts, want %d", n, quickExits)
	}
	if _, err := os.Stat(filepath.Join(run, "mysqld.sock.lock")); err == nil {
		t.Error("the lock of an earlier mysqld is still there")
	}
}

func TestATerminatedMysqldIsNotStartedAgain(t *testing.T) {
	argv, starts := script(t, "trap 'exit 0' TERM\nkill -TERM $PPID\nwhile :; do sleep 0.05; done\n")
	if err := supervise(t.TempDir(), argv, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("a clean end: %v", err)
	}
	if n := starts(); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

func TestAKilledMysqldIsStartedAgain(t *testing.T) {
	argv, starts := script(t, "[ $(wc -l < ${0%/*}/starts) -gt 1 ] && { trap 'exit 0' TERM; kill -TERM $PPID; sleep 1; }\nkill -KILL $$\n")
	if err := supervise(t.TempDir(), argv, slog.New(slog.DiscardHandler)); err != nil && !strings.Contains(err.Error(), syscall.SIGKILL.String()) {
		t.Error(err)
	}
	if n := starts(); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

// I10: mysqld never starts under its old server_uuid with the data of another server.
func TestI10AClonedMysqldIsStartedAsAnotherServer(t *testing.T) {
	data := t.TempDir()
	t.Setenv("MFG_DATADIR", data)
	const old = "[auto]\nserver-uuid=3e11fa47-71ca-11e1-9e33-c80aa9429562\n"
	write(t, filepath.Join(data, "auto.cnf"), old, 0o600)
	if err := os.Mkdir(filepath.Join(data, "#clone"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The first start ends in a clone, the second takes it.
	argv, starts := script(t, `cat "$MFG_DATADIR/auto.cnf" >> ${0%/*}/seen
if [ -e "$MFG_DATADIR/#clone/#status_fix" ]; then trap 'exit 0' TERM; kill -TERM $PPID; sleep 1; fi
: > "$MFG_DATADIR/#clone/#status_fix"; exit 16
`)
	if err := supervise(t.TempDir(), argv, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	seen, err := os.ReadFile(filepath.Join(filepath.Dir(argv[0]), "seen"))
	if err != nil || starts() != 2 || !strings.HasPrefix(string(seen), old) || strings.Count(string(seen), "server-uuid=") != 2 || strings.Count(string(seen), old) != 1 {
		t.Errorf("%d starts saw %q, %v", starts(), seen, err)
	}
	if err := os.Mkdir(filepath.Join(data, "auto.cnf.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := starts()
	if err := supervise(t.TempDir(), argv, slog.New(slog.DiscardHandler)); err == nil || starts() != before {
		t.Error("mysqld was started, and who it is could not be written")
	}
}
