// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// logical loads a dump into a fresh server.
func (l *loading) logical(ctx context.Context) error {
	s := l.server
	if l.Config.Server.DefaultsFile == "" {
		s.Extra = append(s.Extra, ownSettings(l.facts)...)
	}
	if err := s.FreshKeyring(); err != nil {
		return err
	}
	if err := s.Initialise(ctx); err != nil {
		return err
	}
	// The redo log is off while the data comes, and of use only for the rest.
	if err := s.Start(ctx); err != nil {
		return err
	}
	conn, err := s.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if l.encrypts, err = encryptsTables(ctx, conn, l.Config.Server.KeyringFile); err != nil {
		return terms.Fail(terms.ServerFailed, err)
	}
	l.encrypts = l.encrypts && !l.backup.Manifest.DataEncrypted
	before := []string{"ALTER INSTANCE DISABLE INNODB REDO_LOG"}
	for _, t := range l.facts.Tablespaces {
		before = append(before, tablespaceStatement(t, l.encrypts || t.Encrypted && l.Config.Server.KeyringFile != ""))
	}
	if err := mysqld.Run(ctx, conn, before...); err != nil {
		return terms.Fail(terms.LoadFailed, fmt.Errorf("prepare the server: %w", err))
	}
	if err := l.stream(ctx); err != nil {
		return err
	}
	// Before what is granted on them.
	if err := l.restoreViews(ctx, conn); err != nil {
		return err
	}
	warnings, err := loadAccounts(ctx, conn, l.facts.Accounts)
	if l.warnings = append(l.warnings, warnings...); err != nil {
		return terms.Fail(terms.LoadFailed, err)
	}
	if err := l.restoreEvents(ctx, conn); err != nil {
		return err
	}
	return terms.Fail(terms.LoadFailed, mysqld.Run(ctx, conn, "ALTER INSTANCE ENABLE INNODB REDO_LOG"))
}

// tablespaceStatement makes the tablespace, in a file of its name in the data directory, wherever it was before.
func tablespaceStatement(t terms.Tablespace, encrypt bool) string {
	file := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(path.Base(t.Name) + ".ibd")
	s := "CREATE TABLESPACE " + mysqld.QuoteName(t.Name) + " ADD DATAFILE '" + file + "'"
	if t.BlockBytes > 0 {
		s += fmt.Sprintf(" FILE_BLOCK_SIZE = %d", t.BlockBytes)
	}
	if encrypt {
		s += " ENCRYPTION = 'Y'"
	}
	return s
}

// stream gives the dump to mysql. What was loaded of a stream that ended early is never used: the directory keeps its mark.
func (l *loading) stream(ctx context.Context) error {
	part, _ := l.backup.Manifest.Part(terms.PartDump)
	l.Report.Begin(terms.Loading, part.Bytes)
	in, err := l.backup.Part(ctx, terms.PartDump)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	child, err := l.server.Client(ctx, "binary-mode\nmax-allowed-packet=1G\ndefault-character-set=utf8mb4\n"+
		"net-buffer-length=1M\nskip-reconnect\n"+mysqld.OptionLine("init-command", "SET SESSION sql_log_bin = 0"))
	if err != nil {
		return err
	}
	defer child.Close()
	stdin, err := child.StdinPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return terms.Fail(terms.BadConfig, fmt.Errorf("start mysql: %w", err))
	}
	dump := allowInvalidDates(in)
	if l.encrypts {
		dump = &encrypting{in: dump}
	}
	poured := mysqld.Pour(dump, l.Report.Meter(stdin))
	if poured != nil && !errors.Is(poured, syscall.EPIPE) {
		// The stream is at fault. What mysql has is half of something: it must not take it for an end.
		_ = child.Process.Kill()
		_ = child.Wait()
		return poured
	}
	_ = stdin.Close()
	if err := child.Wait(); err != nil || poured != nil {
		return terms.Fail(terms.LoadFailed, fmt.Errorf("mysql: %w: %s", errors.Join(err, poured), child.Said()))
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
