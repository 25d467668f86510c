// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settings keep the screen to the program alone, and leave it there when the program has ended.
const settings = `set -g status off
set -g default-terminal screen-256color
set -g remain-on-exit on
set -g history-limit 0
`

// pane is the only one there is.
const pane = "main:0.0"

// Options say what runs on a terminal.
type Options struct {
	Width, Height int
	Argv, Env     []string
	// Record takes all that is drawn, if it is not nil.
	Record *Cast
}

// Session is a terminal with a program on it.
type Session struct {
	dir  string
	env  []string
	fifo *os.File
	done chan struct{}
}

// Start starts a program on a terminal of its own. Close ends both.
func Start(ctx context.Context, o Options) (*Session, error) {
	dir, err := os.MkdirTemp("", "mfg-tmux-") // the path of a socket must be short
	if err != nil {
		return nil, fmt.Errorf("make directory for tmux: %w", err)
	}
	s := &Session{dir: dir, env: environment(o.Env)}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// environment is that of the program. tmux speaks UTF-8 only where the locale does.
func environment(env []string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"TMUX", "TMUX_PANE", "LC_ALL", "TERM", "NO_COLOR"}, name)
	})
	return append(out, "LC_ALL=C.UTF-8", "TERM=xterm-256color")
}

func (s *Session) start(ctx context.Context, o Options) error {
	if err := os.WriteFile(filepath.Join(s.dir, "tmux.conf"), []byte(settings), 0o600); err != nil {
		return fmt.Errorf("write settings of tmux: %w", err)
	}
	// The program waits for a key, so that nothing is drawn before it is recorded. The shell outlives it to tell its exit
	// code, and keys that interrupt are the program's.
	argv := append([]string{"new-session", "-d", "-s", "main", "-x", strconv.Itoa(o.Width), "-y", strconv.Itoa(o.Height),
		"sh", "-c", `stty -echo; read -r _; stty echo; trap : INT QUIT; "$@"; echo $? >"$0.part"; mv "$0.part" "$0"`, s.status()}, o.Argv...)
	if _, err := s.tmux(ctx, argv...); err != nil {
		return err
	}
	if o.Record != nil {
		if err := s.record(ctx, o.Record); err != nil {
			return err
		}
	}
	return s.Keys(ctx, "Enter")
}

// record has tmux copy what the program writes to a pipe, and reads that.
func (s *Session) record(ctx context.Context, c *Cast) error {
	path := filepath.Join(s.dir, "out")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	// Open for writing too, or opening would wait for tmux, which may fail to come.
	fifo, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, fs.ModeNamedPipe)
	if err != nil {
		return fmt.Errorf("open pipe: %w", err)
	}
	s.fifo, s.done = fifo, make(chan struct{})
	go func() {
		defer close(s.done)
		for buffer := make([]byte, 64<<10); ; {
			n, err := fifo.Read(buffer)
			if n > 0 {
				c.Output(time.Now(), buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	_, err = s.tmux(ctx, "pipe-pane", "-O", "-t", pane, "exec cat > '"+path+"'")
	return err
}

// Frame is what the screen shows now, without the spaces at the ends of lines.
func (s *Session) Frame(ctx context.Context) (string, error) {
	raw, err := s.tmux(ctx, "capture-pane", "-p", "-t", pane)
	if err != nil {
		return "", err
	}
	var lines []string
	for line := range strings.Lines(raw) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n", nil
}

// Keys presses keys, by the names that tmux gives them.
func (s *Session) Keys(ctx context.Context, keys ...string) error {
	_, err := s.tmux(ctx, append([]string{"send-keys", "-t", pane}, keys...)...)
	return err
}

// Type types text as it is.
func (s *Session) Type(ctx context.Context, text string) error {
	_, err := s.tmux(ctx, "send-keys", "-t", pane, "-l", text)
	return err
}

// Ended is the exit code of the program, and false while it runs.
func (s *Session) Ended(ctx context.Context) (int, bool, error) {
	raw, err := os.ReadFile(s.status())
	if errors.Is(err, fs.ErrNotExist) {
		_, err := s.tmux(ctx, "has-session", "-t", pane) // without its terminal it will not end any more
		return 0, false, err
	}
	if err != nil {
		return 0, false, fmt.Errorf("read exit code: %w", err)
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, true, fmt.Errorf("read exit code: %w", err)
	}
	return code, true, nil
}

// status is the file that gets the program's exit code: tmux was seen to never learn it.
func (s *Session) status() string { return filepath.Join(s.dir, "status") }

// lastWords is how long what was drawn last may be on its way through the pipe.
const lastWords = time.Second

// Close ends the program and the terminal. The recording is whole after it.
func (s *Session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := s.tmux(ctx, "kill-server")
	if err != nil && strings.Contains(err.Error(), "no server running") || err != nil && strings.Contains(err.Error(), "error connecting") {
		err = nil // it never came up, or has ended
	}
	if s.fifo != nil {
		err = errors.Join(err, s.fifo.SetReadDeadline(time.Now().Add(lastWords)))
		<-s.done
		err = errors.Join(err, s.fifo.Close())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// tmux runs one command on a server of its own, which no other session of this machine sees.
func (s *Session) tmux(ctx context.Context, args ...string) (string, error) {
	argv := append([]string{"-u", "-f", filepath.Join(s.dir, "tmux.conf"), "-S", filepath.Join(s.dir, "socket")}, args...)
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "tmux", argv...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}
