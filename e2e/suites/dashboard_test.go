// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/terminal"
)

// The terminal on which the dashboard is looked at: wide enough for cards.
const (
	screenWidth  = 120
	screenHeight = 40
)

// shot is a screen that was seen.
type shot struct {
	title, words, frame string
	at                  time.Time
}

// screen is the dashboard on a terminal.
type screen struct {
	*terminal.Session
	cast     *terminal.Cast
	recorded *bytes.Buffer
	shots    []shot
}

// dashboard starts it as a person would, and records it.
func dashboard(t *testing.T, title string, args ...string) *screen {
	t.Helper()
	program, err := lab.Program("kubectl-mfg")
	if err != nil {
		t.Fatal(err)
	}
	return onScreen(t, title, lab.Lab.Environ(), append([]string{program, "-n", namespace, "dashboard", name}, args...)...)
}

// onScreen starts a program on a terminal, and records it.
func onScreen(t *testing.T, title string, env []string, argv ...string) *screen {
	t.Helper()
	lab.Lab.Progress(os.Stdout)
	if err := lab.Lab.EnsureTerminal(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &screen{recorded: &bytes.Buffer{}}
	var err error
	s.cast = terminal.NewCast(s.recorded, terminal.Header{Width: screenWidth, Height: screenHeight, Title: title, IdleTimeLimit: 2,
		Env: map[string]string{"TERM": "screen-256color"}}, time.Now())
	s.Session, err = terminal.Start(t.Context(), terminal.Options{
		Width: screenWidth, Height: screenHeight, Env: env, Record: s.cast, Argv: argv,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// lacks says which words a screen does not show.
func lacks(frame string, words ...string) error {
	for _, w := range words {
		if !strings.Contains(frame, w) {
			return fmt.Errorf("it does not show %q", w)
		}
	}
	return nil
}

// until waits for a screen that a check says nothing against, and keeps it.
func (s *screen) until(t *testing.T, limit time.Duration, title, words string, check func(frame string) error) {
	t.Helper()
	frame := ""
	err := stage.Poll(t.Context(), limit, "the dashboard: "+title, func(ctx context.Context) (err error) {
		if frame, err = s.Frame(ctx); err != nil {
			return err
		}
		return check(frame)
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, frame)
	}
	at := time.Now()
	s.cast.Mark(at, title)
	s.shots = append(s.shots, shot{title: title, words: words, frame: frame, at: at})
	t.Logf("%s\n%s", title, frame)
}

// press presses keys.
func (s *screen) press(t *testing.T, text string, keys ...string) {
	t.Helper()
	if text != "" {
		if err := s.Type(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Keys(t.Context(), keys...); err != nil {
		t.Fatal(err)
	}
}

// quit ends the dashboard by its key.
func (s *screen) quit(t *testing.T) {
	t.Helper()
	s.press(t, "", "q")
	s.ends(t)
}

// ends waits for the program, which must end well.
func (s *screen) ends(t *testing.T) {
	t.Helper()
	if err := stage.Poll(t.Context(), time.Minute, "the program on the terminal to end", func(ctx context.Context) error {
		code, ended, err := s.Ended(ctx)
		if err == nil && (!ended || code != 0) {
			err = fmt.Errorf("ended %v with code %d", ended, code)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// record ends the terminal and returns the recording, which must show the same as the screen did.
func (s *screen) record(t *testing.T, words ...string) []byte {
	t.Helper()
	if err := errors.Join(s.Close(), s.cast.Err()); err != nil {
		t.Fatal(err)
	}
	raw := bytes.Clone(s.recorded.Bytes())
	h, events, err := terminal.ReadCast(s.recorded)
	if err != nil {
		t.Fatal(err)
	}
	last := s.shots[len(s.shots)-1]
	frame, err := terminal.Replay(t.Context(), h, events, last.title)
	if err == nil {
		err = lacks(frame, words...)
	}
	if err != nil {
		t.Errorf("the recording, played to %q: %v\n%s", last.title, err, frame)
	}
	t.Logf("recorded %d events, %d KiB", len(events), len(raw)>>10)
	return raw
}

// A planned failover by the keys of the dashboard: the verb shows its plan on the same screen and asks, and the dashboard
// comes back and shows what became of it.
func TestDashboardMovesTheRole(t *testing.T) {
	_, before := whole(t)
	from, to := before.Status.ActiveSite, otherCandidate(t, before)
	afterCooldown(t)
	s := dashboard(t, "A planned failover by the keys of the dashboard", "--allow-actions")
	s.until(t, time.Minute, "Before", "", func(frame string) error {
		return lacks(frame, " live ", "Status    Ready", "* "+from, "takes writes", "If lost")
	})
	s.press(t, ":failover "+to, "Enter")
	s.until(t, 30*time.Second, "The plan", "", func(frame string) error {
		return lacks(frame, "Planned failover of "+name, "Undo", "Move the role to "+to+" now? [y/N]")
	})
	s.press(t, "y", "Enter")
	after := []string{fmt.Sprintf("Failover  planned %s → %s, epoch %d", from, to, before.Status.Epoch+1), "* " + to, "opened", "active site " + from + " -> " + to}
	s.until(t, time.Minute, "After", "", func(frame string) error { return lacks(frame, after...) })
	s.quit(t)
	s.record(t, after...)
}

// keep leaves a file for `make docs-frames`.
func keep(t *testing.T, file string, content []byte) {
	t.Helper()
	dir := filepath.Join(lab.Repo, "out", "dashboard")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
		t.Fatal(err)
	}
}
