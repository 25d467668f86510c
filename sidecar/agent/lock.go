// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockPoll     = 200 * time.Millisecond
	lockProgress = 5 * time.Second
)

// Lock makes the state directory and takes the lock on it that every sidecar and bootstrap holds while it runs: holding
// it proves that no sidecar of an older pod on this volume is left. It waits as long as it takes, and logs that it waits.
// The lock ends when the returned function is called, or with the process.
func Lock(ctx context.Context, stateDir string, log *slog.Logger) (func(), error) {
	if err := os.MkdirAll(stateDir, 0o750); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	path := filepath.Join(stateDir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	began := time.Now()
	told := began
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if time.Since(told) >= lockProgress {
			told = time.Now()
			log.Info("waiting for the sidecar of an older pod on this volume", "lock", path, "waited", time.Since(began).String())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, ctx.Err()), f.Close())
		case <-time.After(lockPoll):
		}
	}
}
