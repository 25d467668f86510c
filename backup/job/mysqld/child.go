// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// childDelay is how long it is waited for the output of a program that has ended.
const childDelay = 5 * time.Second

// Child is a client program of MySQL. It reads its options from memory, and ends with this program.
type Child struct {
	*exec.Cmd
	// Secret is left out of what it is told to have said.
	Secret string

	options *os.File
	said    tailBuffer
	release func()
}

// NewChild prepares a program. Its options are an option file, of which nothing is in its arguments.
func NewChild(ctx context.Context, options, name string, args ...string) (*Child, error) {
	file, err := memoryFile(options)
	if err != nil {
		return nil, err
	}
	c := &Child{Cmd: exec.CommandContext(ctx, name, append([]string{"--defaults-file=" + childFile}, args...)...), options: file}
	c.ExtraFiles, c.WaitDelay, c.Stderr = []*os.File{file}, childDelay, &c.said
	c.SysProcAttr = endsWithUs()
	return c, nil
}

// Start starts it. The goroutine that does so keeps its thread until Close.
func (c *Child) Start() error {
	c.release = lockThread()
	return c.Cmd.Start()
}

// Close lets go of what it was started with, once it has ended.
func (c *Child) Close() {
	if c.release != nil {
		c.release()
	}
	_ = c.options.Close()
}

// Said is the end of what it said, as one line.
func (c *Child) Said() string { return c.said.text(c.Secret) }

// endsWithUs has a process end when the thread that starts it does; see lockThread.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// lockThread keeps the goroutine on its thread: a death signal is bound to the thread that starts the child.
func lockThread() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// memoryFile holds text in memory only, for a child that opens /proc/self/fd/3.
func memoryFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("options", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "options")
	// MySQL's programs ignore option files that everybody may write, without an error.
	if _, err := f.WriteString(text); err != nil || f.Chmod(0o600) != nil {
		return nil, errors.Join(errors.New("hold options in memory"), err, f.Close())
	}
	return f, nil
}

// childFile is where a child finds its first extra file.
const childFile = "/proc/self/fd/3"

// OptionLine is a line of an option file. A quote that is not escaped would end the value, and let a # begin a comment.
func OptionLine(key, value string) string {
	return key + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(value) + "\"\n"
}

// Pour copies with a buffer of its own: io.Copy would take what the other side has.
func Pour(from io.Reader, to io.Writer) error {
	buf := make([]byte, 1<<20)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// tailBuffer keeps the end of what a program says.
type tailBuffer struct {
	mu  sync.Mutex
	buf []byte
}

const saidMax = 4096

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - saidMax; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// saidShown is how many bytes of it an error holds.
const saidShown = 400

// end is the end of it as one line: the reason comes last in a server's log, or is its first error. mysqld tells an error's consequences as errors too.
func (t *tailBuffer) end() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := t.buf
	if i := bytes.Index(said, []byte("[ERROR]")); i >= 0 {
		said = said[i:]
		text := strings.Join(strings.Fields(string(said)), " ")
		return terms.Clip(text, saidShown)
	}
	text := strings.Join(strings.Fields(string(said)), " ")
	if over := len(text) - saidShown; over > 0 {
		text = "..." + strings.ToValidUTF8(text[over:], "")
	}
	return text
}

// text is one line of it, without the secret and without what mysqldump always says.
func (t *tailBuffer) text(secrets ...string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range bytes.Lines(t.buf) {
		if !bytes.Contains(line, []byte("A partial dump from a server that has GTIDs")) {
			lines = append(lines, strings.TrimSpace(string(line)))
		}
	}
	text := strings.Join(lines, " ")
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return terms.Clip(text, saidShown)
}
