// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/api/wire"
)

// world is a server and its volume.
type world struct {
	mu    sync.Mutex
	write func(context.Context) error
	try   func() error
	open  atomic.Bool

	writes, tries, writing, mostWriting, unable atomic.Int32
}

func (w *world) ProbeWrite(ctx context.Context) error {
	w.writes.Add(1)
	w.mostWriting.Store(max(w.mostWriting.Load(), w.writing.Add(1)))
	defer w.writing.Add(-1)
	w.mu.Lock()
	write := w.write
	w.mu.Unlock()
	return write(ctx)
}

// becomes changes what the server does from now on.
func (w *world) becomes(write func(context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write = write
}

func (w *world) Try() error {
	w.tries.Add(1)
	return w.try()
}

func well(context.Context) error { return nil }

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func server(number uint16) func(context.Context) error {
	return func(context.Context) error { return fmt.Errorf("write: %w", &driver.MySQLError{Number: number}) }
}

// play runs a probe beside an open site until the story is told.
func play(t *testing.T, w *world, tell func(a *Agent)) {
	synctest.Test(t, func(t *testing.T) {
		if w.try == nil {
			w.try = func() error { return nil }
		}
		w.open.Store(true)
		a := &Agent{MySQL: w, Volume: w, Open: w.open.Load, Unable: func() { w.unable.Add(1) }, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { a.Run(ctx); close(ended) }()
		tell(a)
		cancel()
		<-ended
	})
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestWhatTheProbeSays(t *testing.T) {
	forever := make(chan struct{})
	stuck := func() error { <-forever; return nil }
	full := func() error { return &os.PathError{Op: "write", Err: syscall.ENOSPC} }
	for name, tc := range map[string]struct {
		reason string
		write  func(context.Context) error
		try    func() error
		want   wire.WriteProbe
	}{
		"open":                            {"a client could write", well, nil, wire.WriteProbe{Outcome: wire.WriteDone}},
		"offline":                         {"as a client is told", server(3032), nil, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteOffline, Errno: 3032}},
		"read-only":                       {"as a client is told", server(1290), nil, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteReadOnly, Errno: 1290}},
		"all taken":                       {"as a client is told", server(1040), nil, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteTooManyConnections, Errno: 1040}},
		"TLS only":                        {"as a client is told", server(3159), nil, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteSecureTransport, Errno: 3159}},
		"locked":                          {"a backup that takes its time", server(1205), nil, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteLocked, Errno: 1205}},
		"other error":                     {"what is not known refuses clients too", server(1), nil, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteRefused, Errno: 1}},
		"no account":                      {"of an earlier version: that says nothing of clients", server(1045), nil, wire.WriteProbe{Outcome: wire.WriteUnknown, Reason: wire.WriteProbeUnable, Errno: 1045}},
		"no account, full":                {"the volume is looked at all the same", server(1045), full, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull, Errno: 1045}},
		"hangs":                           {"not its disk", hangs, nil, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteNoAnswer}},
		"disk hangs":                      {"both do", hangs, stuck, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskStalled}},
		"disk hangs, and the row is held": {"by the probe before, which hangs in its commit", server(1205), stuck, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskStalled, Errno: 1205}},
		"disk hangs, and all are taken":   {"by clients that hang in their commits", server(1040), stuck, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskStalled, Errno: 1040}},
		"disk hangs, and it is offline":   {"that has another cause", server(3032), stuck, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteOffline, Errno: 3032}},
		"slow disk":                       {"clients commit", well, stuck, wire.WriteProbe{Outcome: wire.WriteDone}},
		"full":                            {"the redo log is made beforehand, the next client waits", well, full, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull}},
		"full, and hangs":                 {"what the volume says is the cause", hangs, full, wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull}},
		"remounted": {"the kernel gave the file system up", well, func() error { return syscall.EROFS },
			wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFailed}},
		"no right to try": {"that is our own trouble", well, func() error { return syscall.EACCES }, wire.WriteProbe{Outcome: wire.WriteDone}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{write: tc.write, try: tc.try}
			synctest.Test(t, func(t *testing.T) {
				forever = make(chan struct{})
				if w.try == nil {
					w.try = func() error { return nil }
				}
				w.open.Store(true)
				a := &Agent{MySQL: w, Volume: w, Open: w.open.Load, Log: slog.New(slog.DiscardHandler)}
				ctx, cancel := context.WithCancel(t.Context())
				go a.Run(ctx)
				after(21 * time.Second)
				got := a.Report()
				cancel()
				if got == nil {
					t.Fatal("nothing is said")
				}
				if got.ForMillis < 18_000 || got.AgeMillis > 4_000 {
					t.Errorf("for %d ms, %d ms old", got.ForMillis, got.AgeMillis)
				}
				got.ForMillis, got.AgeMillis, got.TookMillis = 0, 0, 0
				if *got != tc.want {
					t.Errorf("%s: got %+v, want %+v", tc.reason, *got, tc.want)
				}
				close(forever)
			})
		})
	}
}

// A probe that hangs never piles up: one write at a time, one try on the volume as long as that hangs, and the next ones go on.
func TestProbesNeverPileUp(t *testing.T) {
	forever := make(chan struct{})
	w := &world{write: hangs}
	synctest.Test(t, func(t *testing.T) {
		forever = make(chan struct{})
		w.try = func() error { <-forever; return nil }
		w.open.Store(true)
		a := &Agent{MySQL: w, Volume: w, Open: w.open.Load, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		go a.Run(ctx)
		after(time.Minute)
		if w.tries.Load() != 1 || w.mostWriting.Load() != 1 || w.writes.Load() < 15 || w.writes.Load() > 31 {
			t.Errorf("%d tries on the volume, %d writes, %d at once", w.tries.Load(), w.writes.Load(), w.mostWriting.Load())
		}
		close(forever)
		w.becomes(well)
		after(7 * time.Second)
		if r := a.Report(); r == nil || r.Outcome != wire.WriteDone || r.ForMillis > 8_000 {
			t.Errorf("after the disk is back: %+v", r)
		}
		cancel()
	})
}

// Only an open site is written to, and what was found of one that was closed meanwhile says nothing.
func TestOnlyAnOpenSiteIsProbed(t *testing.T) {
	w := &world{write: server(3032)}
	play(t, w, func(a *Agent) {
		after(10 * time.Second)
		if r := a.Report(); r == nil || r.Reason != wire.WriteOffline {
			t.Errorf("open: %+v", r)
		}
		w.open.Store(false)
		if r := a.Report(); r != nil {
			t.Errorf("closed: %+v", r)
		}
		after(3 * time.Second)
		before := w.writes.Load()
		after(10 * time.Second)
		if now := w.writes.Load(); now != before {
			t.Errorf("%d writes to a closed site", now-before)
		}
		w.becomes(func(context.Context) error {
			if w.writes.Load() == before+1 {
				w.open.Store(false) // the fence comes in the middle of it
				return errors.New("connection lost")
			}
			return nil
		})
		w.open.Store(true)
		after(3 * time.Second)
		w.open.Store(true)
		if r := a.Report(); r != nil {
			t.Errorf("closed during the probe: %+v", r)
		}
		after(2 * time.Second)
		if r := a.Report(); r == nil || r.Outcome != wire.WriteDone || r.ForMillis > 3_000 {
			t.Errorf("opened again: %+v", r)
		}
	})
}

// A row of failures is one whatever they are, and a single success ends it. What the probe itself cannot is told once.
func TestRows(t *testing.T) {
	w := &world{write: server(3032)}
	play(t, w, func(a *Agent) {
		after(5 * time.Second)
		w.becomes(server(1040))
		after(4 * time.Second)
		if r := a.Report(); r.Reason != wire.WriteTooManyConnections || r.ForMillis < 8_000 {
			t.Errorf("two reasons in a row: %+v", r)
		}
		w.becomes(well)
		after(2 * time.Second)
		w.becomes(server(1040))
		after(2 * time.Second)
		if r := a.Report(); r.Outcome != wire.WriteFails || r.ForMillis > 3_000 {
			t.Errorf("after a success: %+v", r)
		}
		w.becomes(server(1142))
		after(10 * time.Second)
		if r := a.Report(); r.Outcome != wire.WriteUnknown || w.unable.Load() != 1 {
			t.Errorf("without its right: %+v, told %d times", r, w.unable.Load())
		}
	})
}

func TestTheFileIsEmptyInBetween(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "write-probe")}
	for range 2 {
		if err := f.Try(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(f.Path); err != nil || info.Size() != 0 {
			t.Errorf("left behind: %v, %v", info.Size(), err)
		}
	}
	if err := (File{Path: filepath.Join(t.TempDir(), "no", "write-probe")}).Try(); !errors.Is(err, os.ErrNotExist) || isFull(err) || isBroken(err) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		if err := (File{Path: "/dev/full"}).Try(); !isFull(err) {
			t.Errorf("a full device: %v", err)
		}
	}
}

// The volume of a site that is not open is tried too, and only that: who could take over must have one that takes writes.
func TestTheVolumeOfAClosedSiteIsTried(t *testing.T) {
	for name, tc := range map[string]struct {
		try  func(forever chan struct{}) error
		want wire.VolumeProbe
	}{
		"well":     {func(chan struct{}) error { return nil }, wire.VolumeProbe{Outcome: wire.WriteDone}},
		"hangs":    {func(f chan struct{}) error { <-f; return nil }, wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskStalled}},
		"full":     {func(chan struct{}) error { return syscall.EDQUOT }, wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull}},
		"broken":   {func(chan struct{}) error { return syscall.EIO }, wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFailed}},
		"no right": {func(chan struct{}) error { return syscall.EACCES }, wire.VolumeProbe{Outcome: wire.WriteUnknown, Reason: wire.WriteProbeUnable}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				forever := make(chan struct{})
				w := &world{write: well, try: func() error { return tc.try(forever) }}
				a := &Agent{MySQL: w, Volume: w, Open: w.open.Load, Log: slog.New(slog.DiscardHandler)}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go a.Run(ctx)
				after(25 * time.Second)
				got := a.VolumeReport()
				if got == nil || got.AgeMillis > (closedInterval+timeout+interval).Milliseconds() {
					t.Fatalf("%+v", got)
				}
				fails, most := tc.want.Outcome == wire.WriteFails, int32(3)
				if fails {
					most = 13 // at every round, so that it is soon known whether it was one slow write
				}
				if lasts := got.ForMillis >= 20_000; lasts != fails || !fails && got.ForMillis != 0 {
					t.Errorf("it fails: %t, for %d ms", fails, got.ForMillis)
				}
				if got.AgeMillis, got.ForMillis = 0, 0; *got != tc.want {
					t.Errorf("got %+v, want %+v", *got, tc.want)
				}
				if w.writes.Load() != 0 || w.tries.Load() > most {
					t.Errorf("%d writes to a site that is not open, %d tries on its volume", w.writes.Load(), w.tries.Load())
				}
				if w.open.Store(true); a.VolumeReport() != nil {
					t.Error("an open site is written to, and says that")
				}
				close(forever)
			})
		})
	}
}
