// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, dir string) *Timer {
	t.Helper()
	timer, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := timer.Close(); err != nil {
			t.Error(err)
		}
	})
	return timer
}

// I4: both sides see one deadline, and it outlives either of them.
func TestBothSidesShareTheDeadlineI4(t *testing.T) {
	dir := t.TempDir()
	sidecar, supervisor := open(t, dir), open(t, dir)
	if got := supervisor.Deadline(); got != 0 {
		t.Errorf("a new one says %v: mysqld starts read-only", got)
	}
	sidecar.Set(5 * time.Second)
	if got := supervisor.Deadline(); got != 5*time.Second {
		t.Errorf("got %v", got)
	}
	sidecar.Sooner(7 * time.Second)
	if got := supervisor.Deadline(); got != 5*time.Second {
		t.Errorf("a later one replaced an earlier one: %v", got)
	}
	sidecar.Sooner(4 * time.Second)
	if got := open(t, dir).Deadline(); got != 4*time.Second {
		t.Errorf("the next run sees %v", got)
	}
	sidecar.Clear()
	if got := supervisor.Deadline(); got != 0 {
		t.Errorf("got %v", got)
	}
	sidecar.Sooner(6 * time.Second)
	if got := supervisor.Deadline(); got != 6*time.Second {
		t.Errorf("none stood: %v", got)
	}
	sidecar.Set(-time.Second)
	if got := supervisor.Deadline(); got <= 0 {
		t.Errorf("a deadline of long ago reads as none: %v", got)
	}
}

func TestWatched(t *testing.T) {
	dir := t.TempDir()
	sidecar, supervisor := open(t, dir), open(t, dir)
	if sidecar.Watched(time.Hour) || sidecar.Watched(Silent/2) { // also soon after the machine has started
		t.Error("nobody has looked yet")
	}
	supervisor.Beat(time.Hour)
	if !sidecar.Watched(time.Hour+Silent) || sidecar.Watched(time.Hour+Silent+1) {
		t.Error("want it watched for exactly Silent")
	}
}

// I4: which mysqld a deadline ends.
func TestDueI4(t *testing.T) {
	for name, tc := range map[string]struct {
		deadline, started, now time.Duration
		want                   bool
	}{
		"nothing is due":             {0, 1, 100, false},
		"nothing is due, ever":       {0, -1, 100, false},
		"not yet":                    {50, 1, 49, false},
		"now":                        {50, 1, 50, true},
		"long ago":                   {50, 1, 99, true},
		"for the one before":         {50, 60, 99, false},
		"started in the same moment": {50, 50, 99, false},
		"the one before has ended, and this one may be opened under its deadline": {50, 49, 99, true},
	} {
		if got := Due(tc.deadline, tc.started, tc.now); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestADirectoryThatIsNotThere(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opened: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, fileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a directory in its place was opened")
	}
}

func TestTheClockGoesOn(t *testing.T) {
	before, err := Now()
	if err != nil || before <= 0 {
		t.Fatal(before, err)
	}
	if after, _ := Now(); after < before {
		t.Errorf("from %v to %v", before, after)
	}
}

// TestWhatCannotBeSharedIsRefusedI4: a deadline that the other side does not see would end nobody.
func TestWhatCannotBeSharedIsRefusedI4(t *testing.T) {
	sealed, err := unix.MemfdCreate("sealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(sealed) })
	if _, err := unix.FcntlInt(uintptr(sealed), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]string{
		"memory of each side's own":     "/dev/zero", // it has no size, and can be mapped
		"memory that nobody may change": fmt.Sprintf("/proc/self/fd/%d", sealed),
	} {
		dir := t.TempDir()
		if err := os.Symlink(place, filepath.Join(dir, fileName)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil {
			t.Errorf("I4: %s is taken for a deadline", name)
		}
	}
}

// TestNothingIsLeftOfATimer: the mapping alone is kept, and after Close a use of it is found at once instead of changing what lies there.
func TestNothingIsLeftOfATimer(t *testing.T) {
	dir := t.TempDir()
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	open(t, dir)
	before := descriptors()
	for range 20 {
		open(t, dir)
	}
	if after := descriptors(); after > before {
		t.Errorf("%d files stay open", after-before)
	}
	timer, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := timer.Close(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("it is used after it was closed")
		}
	}()
	timer.Clear()
}

// TestAClockThatIsSlowedDownKeepsTheLeaseI4: what a time service does to the machine's clocks makes no lease longer, and a sleep counts.
func TestAClockThatIsSlowedDownKeepsTheLeaseI4(t *testing.T) {
	real, slept := time.Minute, time.Duration(0)
	clocks := func(clock int32) (time.Duration, error) {
		slewed := real - real/12
		switch clock {
		case unix.CLOCK_MONOTONIC_RAW:
			return real, nil
		case unix.CLOCK_MONOTONIC:
			return slewed, nil
		case unix.CLOCK_BOOTTIME:
			return slewed + slept, nil
		}
		return 0, errNoClock
	}
	begin, err := now(clocks)
	if err != nil {
		t.Fatal(err)
	}
	real += time.Minute
	if after, _ := now(clocks); after-begin != time.Minute {
		t.Errorf("I4: a minute takes %s", after-begin)
	}
	slept += time.Hour
	if after, _ := now(clocks); after-begin != time.Hour+time.Minute {
		t.Errorf("I4: an hour of sleep and a minute take %s", after-begin)
	}
	for _, broken := range []int32{unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME} {
		if _, err := now(func(clock int32) (time.Duration, error) {
			if clock == broken {
				return 0, errNoClock
			}
			return clocks(clock)
		}); err == nil {
			t.Errorf("clock %d cannot be read, and the time is known", broken)
		}
	}
}
