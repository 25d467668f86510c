// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// dumpOptions are those of mysqldump, in its option file, so that nothing of them is in the arguments.
//
//   - skip-network-timeout and net-write-timeout: mysqldump would have the server wait for days for somebody who is gone
//   - no-tablespaces: those are for NDB; general tablespaces are read apart
//   - skip-dump-date: two dumps of one state are the same
var dumpOptions = []string{
	"single-transaction", "set-gtid-purged=ON", "source-data=2", "routines", "events", "triggers", "hex-blob", "no-tablespaces", "opt",
	"skip-dump-date", "skip-network-timeout", "max-allowed-packet=1G", "net-buffer-length=1M", "default-character-set=utf8mb4", "tz-utc",
}

// netWriteTimeout is how long the site waits for a storage that does not take anything, before the dump is given up.
const netWriteTimeout = 600

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

// optionLine is a line of an option file. A quote that is not escaped would end the value, and let a # begin a comment.
func optionLine(key, value string) string {
	return key + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(value) + "\"\n"
}

// options are mysqldump's option file.
func (s Source) options(password string) string {
	var b strings.Builder
	b.WriteString("[client]\n")
	for _, pair := range [][2]string{{"host", s.Host}, {"user", s.User}, {"password", password}, {"protocol", "tcp"}} {
		b.WriteString(optionLine(pair[0], pair[1]))
	}
	fmt.Fprintf(&b, "port=%d\n", s.Port)
	if s.CAFile != "" {
		b.WriteString(optionLine("ssl-mode", "VERIFY_IDENTITY") + optionLine("ssl-ca", s.CAFile))
	} else {
		// A group without TLS; the password is not sent in the clear all the same.
		b.WriteString("ssl-mode=PREFERRED\nget-server-public-key\n")
	}
	b.WriteString("[mysqldump]\n" + strings.Join(dumpOptions, "\n") + "\n")
	b.WriteString(optionLine("init-command", fmt.Sprintf("SET SESSION lock_wait_timeout = %d, net_write_timeout = %d", s.lockWait(), netWriteTimeout)))
	return b.String()
}

// dump streams a dump of the databases into out. It ends the sessions on the site before it ends mysqldump.
func dump(ctx context.Context, s Source, src *source, schemas []string, out io.Writer) (gtid.Set, []TableRows, error) {
	if err := ctx.Err(); err != nil {
		return gtid.Set{}, nil, err
	}
	options, err := memoryFile(s.options(src.password))
	if err != nil {
		return gtid.Set{}, nil, err
	}
	defer func() { _ = options.Close() }()
	cmd := exec.CommandContext(ctx, "mysqldump", append([]string{"--defaults-file=" + childFile, "--databases", "--"}, schemas...)...)
	cmd.ExtraFiles, cmd.WaitDelay = []*os.File{options}, 5*time.Second
	said := &tailBuffer{}
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error {
		// The locks first, and only then the program that has them: the server may take long to notice that it is gone.
		return errors.Join(src.end(), cmd.Process.Kill())
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return gtid.Set{}, nil, err
	}
	unlock := lockThread()
	defer unlock()
	if err := cmd.Start(); err != nil {
		return gtid.Set{}, nil, fail(BadConfig, fmt.Errorf("start mysqldump: %w", err))
	}
	scan := &scanner{}
	copied := pour(stdout, io.MultiWriter(scan, out))
	if copied != nil {
		_ = src.end() // nobody reads any more: the dump is worth nothing, and must not hold its locks
		_ = cmd.Process.Kill()
	}
	waited := cmd.Wait()
	if copied != nil {
		return gtid.Set{}, nil, copied
	}
	if waited != nil {
		return gtid.Set{}, nil, dumpError(waited, said.text(src.password))
	}
	set, err := scan.complete()
	return set, scan.tables, fail(DumpFailed, err)
}

// pour copies with a buffer of its own: io.Copy would take what the other side has.
func pour(from io.Reader, to io.Writer) error {
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

var saidNumber = regexp.MustCompile(`\((\d{4})\)|[Ee]rror:? (\d{4})`)

// dumpError is why mysqldump ended.
func dumpError(waited error, said string) error {
	err := fmt.Errorf("mysqldump: %w: %s", waited, said)
	m := saidNumber.FindStringSubmatch(said)
	if m == nil {
		return fail(DumpFailed, err)
	}
	switch m[1] + m[2] {
	case "2003", "2005":
		return fail(SourceUnreachable, err)
	case "2006", "2013", "1317", "3032", "1053", "3168", "4031":
		return fail(SourceLost, err)
	case "1205":
		return fail(SourceBusy, err)
	case "1045", "1044", "1142", "1227", "2026":
		return fail(SourceRefused, err)
	}
	return fail(DumpFailed, err)
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
		return clip(text, saidShown)
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
	return clip(text, saidShown)
}
