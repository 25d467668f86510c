// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"archive/tar"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// keyringMax is far above what a keyring with ten thousand keys has.
const keyringMax = 8 << 20

// physical unpacks a data directory, with its keyring, and makes it another server.
func (l *loading) physical(ctx context.Context) error {
	if err := l.unpack(ctx); err != nil {
		return err
	}
	s := l.server
	if l.Config.Server.DefaultsFile == "" {
		s.Extra = append(s.Extra, fmt.Sprintf("--innodb-page-size=%d", l.facts.PageSize), fmt.Sprintf("--lower-case-table-names=%d", l.facts.CaseNames),
			"--innodb-data-file-path="+l.facts.DataFilePath)
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	conn, err := s.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// A clone brings the channel of the site that it was made of.
	after := []string{"RESET REPLICA ALL"}
	if l.Config.Server.KeyringFile != "" {
		// The server has a new identity, by which its keys are named; without new ones it could make no table once the keyring is sealed.
		after = append(after, "ALTER INSTANCE ROTATE INNODB MASTER KEY")
		if on, err := binlogEncrypted(ctx, conn); err != nil {
			return err
		} else if on {
			after = append(after, "ALTER INSTANCE ROTATE BINLOG MASTER KEY")
		}
	}
	if err := mysqld.Run(ctx, conn, after...); err != nil {
		return terms.Fail(terms.LoadFailed, err)
	}
	return l.restoreEvents(ctx, conn)
}

func binlogEncrypted(ctx context.Context, conn *sql.Conn) (on bool, err error) {
	err = conn.QueryRowContext(ctx, "SELECT @@GLOBAL.binlog_encryption AND @@GLOBAL.log_bin").Scan(&on)
	return on, terms.Fail(terms.ServerFailed, err)
}

func (l *loading) unpack(ctx context.Context) error {
	if file := l.Config.Server.KeyringFile; file != "" {
		if err := l.server.FreshKeyring(); err != nil {
			return err
		}
		part, err := l.backup.Part(ctx, bucket.PartKeyring)
		if err != nil {
			return err
		}
		raw, err := io.ReadAll(io.LimitReader(part, keyringMax))
		if err := errors.Join(err, part.Close()); err != nil {
			return err
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			return terms.Fail(terms.BadConfig, fmt.Errorf("put the keyring into memory: %w", err))
		}
	}
	part, _ := l.backup.Manifest.Part(terms.PartData)
	l.Report.Begin(terms.Unpacking, part.Bytes)
	in, err := l.backup.Part(ctx, terms.PartData)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return unpack(ctx, l.Config.Server.Dir, &countReader{from: in, report: l.Report})
}

type countReader struct {
	from   io.Reader
	report *terms.Reporter
}

func (r *countReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.report.Add(int64(n))
	return n, err
}

// unpack makes a data directory of a tar. Nothing may lie outside it, nothing is overwritten, and there is nothing but files and
// directories. It reads to the end of the stream: only that says that all of it was there.
func unpack(ctx context.Context, dir string, in io.Reader) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, in)
			return err
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name := path.Clean(h.Name)
		if !filepath.IsLocal(name) {
			return terms.Fail(terms.Reason(bucket.Damaged), fmt.Errorf("the backup holds a file named %.100q, which lies outside the data directory", h.Name))
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.Mkdir(name, 0o750)
		case tar.TypeReg:
			err = unpackFile(root, name, r)
		default:
			err = terms.Fail(terms.Reason(bucket.Damaged), fmt.Errorf("the backup holds %.100q, which is neither a file nor a directory", h.Name))
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, r, make([]byte, 1<<20))
	return errors.Join(err, f.Close())
}
