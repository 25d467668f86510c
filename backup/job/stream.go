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
	"syscall"
	"time"
)

// stream gives the dump to mysql. What was loaded of a stream that ended early is never used: the directory keeps its mark.
func (l *loading) stream(ctx context.Context) error {
	part, _ := l.backup.Manifest.Part(partDump)
	l.report.begin(Loading, part.Bytes)
	in, err := l.backup.Part(ctx, partDump)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	options, err := memoryFile("[client]\n" + optionLine("user", loader) + optionLine("password", loaderPassword) +
		optionLine("socket", l.server.config.RunDir+"/load.sock") + "[mysql]\nbinary-mode\nmax-allowed-packet=1G\ndefault-character-set=utf8mb4\n" +
		"net-buffer-length=1M\nskip-reconnect\n" + optionLine("init-command", "SET SESSION sql_log_bin = 0"))
	if err != nil {
		return err
	}
	defer func() { _ = options.Close() }()
	cmd := exec.CommandContext(ctx, "mysql", "--defaults-file="+childFile)
	cmd.ExtraFiles, cmd.WaitDelay = []*os.File{options}, 5*time.Second
	said := &tailBuffer{}
	cmd.Stderr, cmd.Stdout = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer lockThread()()
	if err := cmd.Start(); err != nil {
		return fail(BadConfig, fmt.Errorf("start mysql: %w", err))
	}
	poured := pour(allowInvalidDates(in), &meter{to: stdin, report: l.report})
	if poured != nil && !errors.Is(poured, syscall.EPIPE) {
		// The stream is at fault. What mysql has is half of something: it must not take it for an end.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return poured
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil || poured != nil {
		return fail(LoadFailed, fmt.Errorf("mysql: %w: %s", errors.Join(err, poured), said.text(loaderPassword)))
	}
	return nil
}

const (
	dumpMode = "SQL_MODE='NO_AUTO_VALUE_ON_ZERO'"
	loadMode = "SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"
	// dumpHead is how much of a dump is looked at for its mode, which is in its first lines.
	dumpHead = 16 << 10
)

// allowInvalidDates has the dump load under a mode that keeps dates such as the 30th of February, which are there where the site's mode
// allowed them. mysqldump's own mode turns them into zero, without a word.
func allowInvalidDates(in io.Reader) io.Reader {
	head := make([]byte, dumpHead)
	n, err := io.ReadFull(in, head)
	head = bytes.Replace(head[:n], []byte(dumpMode), []byte(loadMode), 1)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return io.MultiReader(bytes.NewReader(head), failing{err})
	}
	return io.MultiReader(bytes.NewReader(head), in)
}

// failing is a reader that has failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
