// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/sidecar/watchdog"
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
	began := time.Now()
	if err := supervise(run, argv, slog.New(slog.NewTextHandler(&log, nil))); err == nil {
		t.Error("a mysqld that keeps ending is not left to the kubelet")
	}
	if took := time.Since(began); took < (quickExits-1)*restartPause {
		t.Errorf("it takes the processor: %d starts in %s", quickExits, took)
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

// deadline opens the deadline of a pod as the sidecar does, and tells the present time on its clock.
func deadline(t *testing.T, run string) (*watchdog.Timer, time.Duration) {
	t.Helper()
	timer, err := watchdog.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = timer.Close() })
	now, err := watchdog.Now()
	if err != nil {
		t.Fatal(err)
	}
	return timer, now
}

// I4: a sidecar that hangs says nothing more, and mysqld ends when its deadline is reached. The next one starts read-only and
// is left alone.
func TestAMysqldIsKilledAtItsDeadlineI4(t *testing.T) {
	run := t.TempDir()
	timer, now := deadline(t, run)
	timer.Set(now + 300*time.Millisecond)
	// The first start ignores SIGTERM and never ends; the second ends the test.
	argv, starts := script(t, "[ $(wc -l < ${0%/*}/starts) -gt 1 ] && { sleep 0.3; trap 'exit 0' TERM; kill -TERM $PPID; sleep 1; }\ntrap '' TERM\nwhile :; do sleep 0.05; done\n")
	var log bytes.Buffer
	if err := supervise(run, argv, slog.New(slog.NewTextHandler(&log, nil))); err != nil && !strings.Contains(err.Error(), syscall.SIGTERM.String()) {
		t.Error(err)
	}
	if n := starts(); n != 2 {
		t.Errorf("%d starts, want 2: the one that was killed, and one that nobody killed", n)
	}
	if !strings.Contains(log.String(), errWatchdog.Error()) {
		t.Errorf("nobody is told why mysqld ended:\n%s", log.String())
	}
	if !regexp.MustCompile(`killed \d+m?s after the deadline, and gone \d+m?s later`).MatchString(log.String()) {
		t.Errorf("nobody is told how late it was:\n%s", log.String())
	}
	if after, _ := watchdog.Now(); after < now+300*time.Millisecond || !timer.Watched(after) {
		t.Errorf("it ended at %v, the deadline was %v; watched: %v", after, now+300*time.Millisecond, timer.Watched(after))
	}
}

// A deadline that is moved in time, or taken back, costs nothing.
func TestADeadlineThatMovesEndsNothing(t *testing.T) {
	run := t.TempDir()
	timer, now := deadline(t, run)
	timer.Set(now + 400*time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 4 {
			time.Sleep(100 * time.Millisecond)
			timer.Set(now + time.Duration(i+5)*100*time.Millisecond)
		}
		timer.Clear()
	}()
	argv, starts := script(t, "trap 'exit 0' TERM\nsleep 1.2\nkill -TERM $PPID\nsleep 1\n")
	if err := supervise(run, argv, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	<-done
	if n := starts(); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

// Without the shared deadline mysqld would have one guard only: it is not started.
func TestWithoutADeadlineMysqldIsNotStartedI4(t *testing.T) {
	argv, starts := script(t, "exit 0\n")
	if err := supervise(t.TempDir()+"/none", argv, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("started")
	}
	if n := starts(); n != 0 {
		t.Errorf("%d starts", n)
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

// A server with a keyring keeps its identity: with another one a sealed server has no master key.
func TestAServerWithAKeyringKeepsItsIdentity(t *testing.T) {
	data := t.TempDir()
	t.Setenv("MFG_DATADIR", data)
	t.Setenv("MFG_KEYRING_FILE", "/run/mysql-keyring/keyring")
	const old = "[auto]\nserver-uuid=3e11fa47-71ca-11e1-9e33-c80aa9429562\n"
	write(t, filepath.Join(data, "auto.cnf"), old, 0o600)
	if err := os.Mkdir(filepath.Join(data, "#clone"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(data, "#clone", "#status_fix"), "", 0o600)
	argv, starts := script(t, "trap 'exit 0' TERM\nkill -TERM $PPID\nsleep 1\n")
	if err := supervise(t.TempDir(), argv, slog.New(slog.DiscardHandler)); err != nil || starts() != 1 {
		t.Fatal(err, starts())
	}
	if now, err := os.ReadFile(filepath.Join(data, "auto.cnf")); err != nil || string(now) != old {
		t.Errorf("it is %q now, %v", now, err)
	}
}

// TestWhichEndsCountAsQuick: a mysqld that ran for a while ends the row.
func TestWhichEndsCountAsQuick(t *testing.T) {
	if inARow(2, quickExit-1) != 3 || inARow(2, quickExit) != 0 || inARow(0, 0) != 1 {
		t.Error("the ends of mysqld are not counted")
	}
}

// TestSignalsAreForMysqld: all are passed on, and some of them say that it is to end for good. One that comes after another counts too.
func TestSignalsAreForMysqld(t *testing.T) {
	for name, tc := range map[string]struct {
		signals string
		starts  int
	}{
		"TERM": {"TERM", 1}, "INT": {"INT", 1}, "QUIT": {"QUIT", 1}, "HUP": {"HUP", 2}, "USR1": {"USR1", 2}, "TERM and HUP": {"TERM HUP", 1},
	} {
		last := tc.signals[strings.LastIndex(tc.signals, " ")+1:]
		// It ends with the last of them; the second start ends the test.
		argv, starts := script(t, `pass() { i=0; while [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done; }
[ $(wc -l < ${0%/*}/starts) -gt 1 ] && { trap 'exit 0' TERM; kill -TERM $PPID; pass; }
trap : TERM INT QUIT HUP USR1
trap 'exit 0' `+last+`
for s in `+tc.signals+`; do kill -$s $PPID; sleep 0.2; done
pass
`)
		if err := supervise(t.TempDir(), argv, slog.New(slog.DiscardHandler)); err != nil && tc.starts == 1 {
			t.Errorf("%s: %v", name, err)
		}
		if n := starts(); n != tc.starts {
			t.Errorf("%s: %d starts, want %d", name, n, tc.starts)
		}
	}
}

// TestWithoutAPlaceOrAProgramNothingIsStarted: to try again would change nothing.
func TestWithoutAPlaceOrAProgramNothingIsStarted(t *testing.T) {
	run := t.TempDir()
	write(t, filepath.Join(run, "mysqld.sock", "occupied"), "", 0o600)
	argv, starts := script(t, "exit 0\n")
	if err := supervise(run, argv, slog.New(slog.DiscardHandler)); err == nil || starts() != 0 {
		t.Errorf("%v, %d starts", err, starts())
	}
	if err := supervise(t.TempDir(), []string{filepath.Join(run, "none")}, slog.New(slog.DiscardHandler)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// superviseIn has this program be a supervisor, for a test that kills it.
const superviseIn = "MFG_TEST_SUPERVISE"

// TestASupervisorThatDiesTakesMysqldWithItI4: it must not run on with one guard.
func TestASupervisorThatDiesTakesMysqldWithItI4(t *testing.T) {
	if program := os.Getenv(superviseIn); program != "" {
		_ = supervise(filepath.Dir(program), []string{program}, slog.New(slog.DiscardHandler))
		return
	}
	argv, _ := script(t, "echo $$ > ${0%/*}/pid.new; mv ${0%/*}/pid.new ${0%/*}/pid\ntrap '' TERM HUP INT\nwhile :; do sleep 0.05; done\n")
	supervisor := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	supervisor.Env = append(os.Environ(), superviseIn+"="+argv[0])
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for range 1000 {
		raw, _ := os.ReadFile(filepath.Join(filepath.Dir(argv[0]), "pid"))
		if pid, _ = strconv.Atoi(strings.TrimSpace(string(raw))); pid != 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = supervisor.Wait()
	gone := func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) }
	for range 300 {
		if gone() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Error("I4: mysqld outlives its supervisor")
}

// zombie is true for a process that has ended and that nobody has asked about yet.
func zombie(pid int) bool {
	raw, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, state, _ := strings.Cut(string(raw), ") ")
	return strings.HasPrefix(state, "Z")
}
