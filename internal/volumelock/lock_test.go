// SPDX-License-Identifier: Apache-2.0

package volumelock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheLockIsExclusive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mfg")
	log := slog.New(slog.DiscardHandler)
	unlock, err := Take(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Take(ctx, dir, log); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("locked twice: %v", err)
	}
	unlock()
	again, err := Take(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestALockThatCannotBeIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no-directory")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(t.Context(), path, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file was taken for the state directory")
	}
}

// A file system may answer never, or late. The wait is told and ends with its context, and the lock that comes late is given back.
func TestAVolumeThatDoesNotAnswer(t *testing.T) {
	late, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		answer := make(chan struct{})
		said := &bytes.Buffer{}
		a := attempt{path: late.Name()}
		_, err := a.wait(ctx, func(context.Context) (*os.File, error) { <-answer; return late, nil }, slog.New(slog.NewTextHandler(said, nil)))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it waits for ever: %v", err)
		}
		if !strings.Contains(said.String(), "does not answer") || strings.Contains(said.String(), "older pod") {
			t.Errorf("it says: %s", said)
		}
		close(answer)
		synctest.Wait()
	})
	if err := late.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a lock that came late is held for ever: %v", err)
	}
}
