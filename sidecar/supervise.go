// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql/datadir"
	"github.com/mysql-mfg/mfg/sidecar/watchdog"
)

const (
	// quickExit is how soon after its start mysqld must end for that to count as one in a row. After quickExits in a row
	// the supervisor leaves the restart to the kubelet, whose back-off and events people look at.
	quickExit  = 10 * time.Second
	quickExits = 5
	// restartPause keeps a mysqld that cannot start from using up the processor.
	restartPause = 200 * time.Millisecond
)

// supervise is the main process of the MySQL container: it starts mysqld and starts it again when it ends. The kubelet
// would wait 10 s and longer before the second restart within ten minutes, and a clone is a restart; docs/decisions/0006
// has the reasons. mysqld starts fenced (my.cnf), so starting it again never opens anything (I1).
//
// It is also the second guard of the fence. The sidecar moves a deadline while its lease lasts; if the deadline is reached,
// for whatever reason, supervise kills mysqld (I4).
func supervise(runDir string, argv []string, log *slog.Logger) error {
	// The death signal below is bound to the thread that starts mysqld.
	runtime.LockOSThread()
	timer, err := watchdog.Open(runDir)
	if err != nil {
		// Without the deadline mysqld would have only one guard, and nothing would show that.
		return err
	}
	defer func() { _ = timer.Close() }()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1)
	defer signal.Stop(signals)
	for row := 0; ; {
		if err := removeSocket(runDir); err != nil {
			return err
		}
		if err := renewIdentity(os.Getenv, log); err != nil {
			return err // mysqld must not start under the old identity: it would use its GTID numbers again (I10)
		}
		started := time.Now()
		ending, err := runOnce(argv, signals, timer)
		if ending {
			log.Info("mysqld ended, as asked", "uptime", time.Since(started).Round(time.Millisecond).String(), "error", fmt.Sprint(err))
			return err
		}
		row = inARow(row, time.Since(started))
		log.Warn("mysqld ended; starting it again", "uptime", time.Since(started).Round(time.Millisecond).String(), "error", fmt.Sprint(err), "inARow", row)
		if used := asyncIOUsedUp(os.ReadFile); row > 0 && used != "" {
			log.Error("mysqld may not have found enough asynchronous I/O", "reason", used)
		}
		if row >= quickExits {
			return fmt.Errorf("mysqld ended %d times in a row: %w", row, err)
		}
		time.Sleep(restartPause)
	}
}

// inARow counts the ends of mysqld in a row that came soon after its start. before is the count so far, lived how long the last one ran.
func inARow(before int, lived time.Duration) int {
	if lived >= quickExit {
		return 0
	}
	return before + 1
}

// errWatchdog is why mysqld ended when the sidecar no longer vouched for it.
var errWatchdog = errors.New("killed: the sidecar did not move the deadline in time")

// renewIdentity gives a cloned server a new identity, before it starts with the data that it received. A server with a keyring keeps
// its identity: it is part of the names of its keys, and under another one a rotation that a sealed server refuses leaves it without
// a master key for new tables (error 3185; docs/decisions/0014). docs/failover.md says what that leaves open.
func renewIdentity(env func(string) string, log *slog.Logger) error {
	if env("MFG_KEYRING_FILE") != "" {
		return nil
	}
	renewed, err := datadir.RenewIdentity(datadirOf(env))
	if renewed != "" {
		log.Info("the data was cloned; mysqld starts with a new server_uuid", "serverUUID", renewed)
	}
	return err
}

// runOnce runs mysqld until it ends. It passes signals on; ending is true if one of them asked for the end.
func runOnce(argv []string, signals <-chan os.Signal, timer *watchdog.Timer) (ending bool, err error) {
	started, err := watchdog.Now()
	if err != nil {
		return true, err
	}
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// This tells mysqld that a supervisor restarts it, so that RESTART and CLONE end in a clean exit 16. Of two equal names the last counts.
	cmd.Env = append(os.Environ(), "MYSQLD_PARENT_PID="+strconv.Itoa(os.Getpid()))
	// If the supervisor ends, mysqld ends too: it must not continue with one guard.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return true, fmt.Errorf("start mysqld: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var killed, deadline time.Duration // when, and which deadline had passed; 0: not yet
	look := time.NewTicker(watchdog.Interval)
	defer look.Stop()
	for {
		select {
		case s := <-signals:
			ending = ending || s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGQUIT
			_ = cmd.Process.Signal(s) // it fails only if mysqld has ended already, which is fine
		case err := <-done:
			return ending, errors.Join(whyKilled(killed, deadline), err)
		case <-look.C:
			if now, due := overdue(timer, started); due {
				// Nothing comes before this: no log, no request. A mysqld that has ended already is fine.
				_ = cmd.Process.Kill()
				if killed == 0 {
					killed, deadline = max(1, now), timer.Deadline()
				}
			}
		}
	}
}

// whyKilled is nil if mysqld ended without the watchdog. How late the kill was, and how long the kernel then took to end the process,
// are the two parts of the second guard's time: a busy machine stretches the first, a slow volume the second.
func whyKilled(killed, deadline time.Duration) error {
	if killed == 0 {
		return nil
	}
	now, err := watchdog.Now()
	if err != nil {
		return errors.Join(errWatchdog, err)
	}
	return fmt.Errorf("%w: killed %s after the deadline, and gone %s later", errWatchdog, (killed - deadline).Round(time.Millisecond), (now - killed).Round(time.Millisecond))
}

// overdue looks at the deadline, and notes that it did. If it cannot read the clock, it is true: without a clock it cannot
// know whether the lease still lasts.
func overdue(timer *watchdog.Timer, started time.Duration) (now time.Duration, due bool) {
	now, err := watchdog.Now()
	if err != nil {
		return 0, true
	}
	timer.Beat(now)
	return now, watchdog.Due(timer.Deadline(), started, now)
}
