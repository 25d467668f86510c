// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// holdFile is in the directory of the lab. Its name ends as those of the lab's own locks, which stay when the lab is created again.
const holdFile = "chaos.lock"

// hold takes the lab of a directory for one run, before anything is looked at or taken back there: two runs would take each other's
// faults for behaviour, and back. It ends with the process, however that ends.
func hold(dir string, args []string, now time.Time) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { // as the lab makes it: others read kubeconfigs in it
		return nil, fmt.Errorf("make lab directory: %w", err)
	}
	path := filepath.Join(dir, holdFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another run breaks the lab in %s: %s; wait for its end, or end it", dir, holder(path))
		}
		return nil, fmt.Errorf("take lock %s: %w", path, err)
	}
	who := fmt.Sprintf("process %d since %s: chaos %s\n", os.Getpid(), now.UTC().Format(time.RFC3339), strings.Join(args, " "))
	if err := errors.Join(f.Truncate(0), writeAt(f, who)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// holder is who wrote into the lock last.
func holder(path string) string {
	raw, err := os.ReadFile(path)
	if who := strings.TrimSpace(string(raw)); err == nil && who != "" {
		return who
	}
	return "it has not said who it is yet"
}
