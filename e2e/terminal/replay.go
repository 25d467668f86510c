// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Replay plays a recording without its pauses, up to a chapter or to the end, and returns the screen that it leaves.
func Replay(ctx context.Context, h Header, events []Event, chapter string) (string, error) {
	dir, err := os.MkdirTemp("", "mfg-replay-")
	if err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var drawn strings.Builder
	for _, e := range events {
		if e.Code == Marker && e.Data == chapter {
			break
		}
		if e.Code == Output {
			drawn.WriteString(e.Data)
		}
	}
	file := filepath.Join(dir, "drawn")
	if err := os.WriteFile(file, []byte(drawn.String()), 0o600); err != nil {
		return "", fmt.Errorf("write what was drawn: %w", err)
	}
	// What was recorded came from a terminal already: nothing may be added to it.
	s, err := Start(ctx, Options{Width: h.Width, Height: h.Height, Env: os.Environ(),
		Argv: []string{"sh", "-c", `stty raw -echo -opost; cat "$1"; : >"$1.done"; sleep 60`, "sh", file}})
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	for {
		if _, err := os.Stat(file + ".done"); err == nil {
			break
		}
		if !wait(ctx, 20*time.Millisecond) {
			return "", ctx.Err()
		}
	}
	return s.settled(ctx)
}

// settled is the screen once it stays: what was written may not be drawn yet.
func (s *Session) settled(ctx context.Context) (string, error) {
	for last := ""; ; {
		frame, err := s.Frame(ctx)
		if err != nil || frame == last && last != "\n" {
			return frame, err
		}
		last = frame
		if !wait(ctx, 200*time.Millisecond) {
			return "", ctx.Err()
		}
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
