// SPDX-License-Identifier: Apache-2.0

// Package volumelock is the lock of a site's data volume. The load of a backup, bootstrap and the sidecar take it in turn,
// each while it changes the volume. docs/internals/fence.md lists its file.
package volumelock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// file is its name in the state directory. Older builds have the same.
	file = "sidecar.lock"

	poll     = 200 * time.Millisecond
	progress = 5 * time.Second
)

// Take makes the state directory and takes the lock on it: holding it proves that nothing of an older pod works on this volume. It waits as
// long as it takes, and logs that it waits. The lock ends when the returned function is called, or with the process.
func Take(ctx context.Context, stateDir string, log *slog.Logger) (func(), error) {
	a := attempt{dir: stateDir, path: filepath.Join(stateDir, file)}
	return a.wait(ctx, a.take, log)
}

// attempt is one try to get the lock.
type attempt struct {
	dir, path string
	// refused is true once another one was seen to hold the lock.
	refused atomic.Bool
}

// wait waits for take, or for the end of ctx. On a network file system each call of take may hang, and then nothing ends the call: so it
// has a goroutine of its own. A lock that comes too late is given back.
func (a *attempt) wait(ctx context.Context, take func(context.Context) (*os.File, error), log *slog.Logger) (func(), error) {
	type outcome struct {
		held *os.File
		err  error
	}
	got := make(chan outcome)
	go func() {
		held, err := take(ctx)
		select {
		case got <- outcome{held, err}:
		case <-ctx.Done():
			_ = held.Close() // without a file it does nothing
		}
	}()
	began := time.Now()
	ticker := time.NewTicker(progress)
	defer ticker.Stop()
	for {
		select {
		case o := <-got:
			if o.err != nil {
				return nil, o.err
			}
			return func() { _ = o.held.Close() }, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: %s: %w", a.path, a.what(), ctx.Err())
		case <-ticker.C:
			log.Info(a.what(), "lock", a.path, "waited", time.Since(began).String())
		}
	}
}

func (a *attempt) what() string {
	if a.refused.Load() {
		return "waiting for an older pod that still works on this volume"
	}
	return "waiting for the data volume, which does not answer"
}

// take asks until the lock is there.
func (a *attempt) take(ctx context.Context) (*os.File, error) {
	if err := os.MkdirAll(a.dir, 0o750); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			a.refused.Store(true)
		case !errors.Is(err, unix.EINTR):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", a.path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(poll):
		}
	}
}
