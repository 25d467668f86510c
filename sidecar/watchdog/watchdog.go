// SPDX-License-Identifier: Apache-2.0

// Package watchdog is the second guard of who may write: a deadline in memory that the sidecar and the supervisor of
// mysqld share. The sidecar moves it while its lease lasts; the supervisor kills mysqld when it is reached. Nothing
// between the two can block: no network, no disk, no log, no kubelet. docs/internals/fence.md states what follows from it.
//
// Times are on a clock of the one kernel that runs both processes (Now), which also counts while the machine sleeps.
package watchdog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// fileName is the shared file. Its directory must be in memory (tmpfs): then no slow disk can hold up access to it.
	fileName = "watchdog"
	// size is one page, in bytes; only its first words are used.
	size = 4096
	// Silent is how long after its last beat the supervisor counts as hanging. It beats every Interval.
	Silent = 3 * time.Second
	// Interval is how often the supervisor looks. On a machine that is not busy, it is late by this much at most.
	Interval = 50 * time.Millisecond
)

// words are the shared memory. Both sides only load and store whole words, so neither can wait for the other.
type words struct {
	// deadline is when the supervisor kills mysqld unless it is moved; 0: mysqld is known to accept no commit.
	deadline atomic.Int64
	// beat is when the supervisor last looked at the deadline.
	beat atomic.Int64
}

// Timer is the shared deadline, as one of the two sides holds it.
type Timer struct {
	memory []byte
	words  *words
}

// Open maps the deadline file in a directory; the side that comes first makes it. A new one says that mysqld accepts no
// commit, which is true: mysqld starts read-only, and the sidecar moves the deadline before it opens writes.
func Open(dir string) (*Timer, error) {
	file, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open watchdog: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := file.Truncate(size); err != nil {
		return nil, fmt.Errorf("size watchdog: %w", err)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map watchdog: %w", err)
	}
	// A page in swap would make its reader wait for a disk. Where locking is not allowed, there usually is no swap.
	_ = unix.Mlock(memory)
	return &Timer{memory: memory, words: (*words)(unsafe.Pointer(&memory[0]))}, nil //nolint:gosec // a page is aligned, larger than the words, and mapped until Close
}

// Close ends the mapping; the other side keeps the deadline.
func (t *Timer) Close() error {
	t.words = nil
	return unix.Munmap(t.memory)
}

// Set moves the deadline. Only the sidecar calls it, one call at a time.
func (t *Timer) Set(until time.Duration) { t.words.deadline.Store(max(1, int64(until))) }

// Sooner moves the deadline unless an earlier one is set.
func (t *Timer) Sooner(until time.Duration) {
	if stands := t.Deadline(); stands == 0 || until < stands {
		t.Set(until)
	}
}

// Clear says that mysqld is known to accept no commit.
func (t *Timer) Clear() { t.words.deadline.Store(0) }

// Deadline is when the supervisor kills mysqld; 0 if nothing is due.
func (t *Timer) Deadline() time.Duration { return time.Duration(t.words.deadline.Load()) }

// Beat notes that the supervisor looks at the deadline.
func (t *Timer) Beat(now time.Duration) { t.words.beat.Store(int64(now)) }

// Watched is true if the supervisor looked at the deadline a short while ago.
func (t *Timer) Watched(now time.Duration) bool {
	beat := time.Duration(t.words.beat.Load())
	return beat > 0 && now-beat <= Silent
}

// Due is true if a mysqld that was started at a given time has to be killed now. A mysqld started after the deadline
// started read-only, and any opening since comes with a later deadline: this one does not concern it.
func Due(deadline, started, now time.Duration) bool {
	return deadline != 0 && now >= deadline && started < deadline
}

// errNoClock cannot happen on Linux; a supervisor without a clock must not guess.
var errNoClock = errors.New("a clock of the kernel cannot be read")

// Now is the time on the clock of the deadline: CLOCK_MONOTONIC_RAW, and how long the machine slept. CLOCK_BOOTTIME alone will not do: a
// time service that sets a clock which is ahead slows it down (chrony by up to 8.3 %), and a lease of a minute then lasts five seconds
// longer than the operator waits for (I4).
func Now() (time.Duration, error) { return now(read) }

func now(read func(clock int32) (time.Duration, error)) (time.Duration, error) {
	raw, err := read(unix.CLOCK_MONOTONIC_RAW)
	if err != nil {
		return 0, err
	}
	awake, err := read(unix.CLOCK_MONOTONIC)
	if err != nil {
		return 0, err
	}
	// Read last: if this process stands still in between, it is too late rather than too early, and the fence comes sooner.
	altogether, err := read(unix.CLOCK_BOOTTIME)
	return raw + altogether - awake, err
}

func read(clock int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, errors.Join(errNoClock, err)
	}
	return time.Duration(ts.Nano()), nil
}
