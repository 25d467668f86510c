// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// keyringMax is far above what a keyring with ten thousand keys has.
const keyringMax = 8 << 20

// physical clones the site into a mysqld here, ends that, and stores its directory. The copy is an InnoDB snapshot like any clone; once it
// is here the site has nothing more to do with it.
func (m *making) physical(ctx context.Context) (set gtid.Set, err error) {
	c, f := m.config, m.src.facts
	own, err := localVersion(ctx)
	if err != nil {
		return set, err
	}
	m.manifest.Tool = "CLONE into mysqld " + own
	if series(own) != series(f.Version) {
		return set, fail(BadConfig, fmt.Errorf("the site runs MySQL %s, and the image of this Job has %s: CLONE copies within one series", f.Version, own))
	}
	if err := room(c.Server.Dir, f.DataBytes); err != nil {
		return set, err
	}
	if err := clear(c.Server.Dir); err != nil {
		return set, err
	}
	s := &server{config: c.Server, log: m.log, extra: []string{
		"--innodb-page-size=" + strconv.FormatInt(f.PageSize, 10), "--lower-case-table-names=" + strconv.FormatInt(f.CaseNames, 10),
		"--innodb-data-file-path=" + f.DataFilePath,
	}}
	m.report.begin(Preparing, 0)
	if err := freshKeyring(c.Server.KeyringFile); err != nil {
		return set, err
	}
	if err := s.initialise(ctx); err != nil {
		return set, err
	}
	s.extra = append(s.extra, "--plugin-load-add=mysql_clone.so")
	if c.Source.CAFile != "" {
		s.extra = append(s.extra, "--clone-ssl-ca="+c.Source.CAFile)
	}
	defer func() {
		if err != nil && s.cmd != nil {
			s.kill()
		}
	}()
	if err := m.clone(ctx, s); err != nil {
		return set, err
	}
	if set, err = m.look(ctx, s); err != nil {
		return set, err
	}
	if err := s.stop(); err != nil {
		return set, err
	}
	return set, m.store(ctx)
}

// clone runs CLONE until the server has started again with the copy.
func (m *making) clone(ctx context.Context, s *server) error {
	src := m.config.Source
	if err := s.start(ctx, loaderStatements()); err != nil {
		return err
	}
	conn, err := s.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	donor := fmt.Sprintf("%s:%d", src.Host, src.Port)
	if _, err := conn.ExecContext(ctx, "SET GLOBAL clone_valid_donor_list = ?", donor); err != nil {
		return fail(BadConfig, fmt.Errorf("name the donor: %w", err))
	}
	m.report.begin(Cloning, m.src.facts.DataBytes)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go m.watch(watched, s.pool)
	statement := fmt.Sprintf("CLONE INSTANCE FROM ?@?:%d IDENTIFIED BY ?", src.Port)
	if src.CAFile != "" {
		statement += " REQUIRE SSL"
	}
	_, err = conn.ExecContext(ctx, statement, src.User, src.Host, m.src.password)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if n := number(err); n != 0 && n != numberNotSupervised {
		return cloneError(err, m.src.password)
	}
	// Whatever the connection came to: the server ends, and its own record says what happened.
	select {
	case <-s.done:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startTimeout):
		return fail(CloneFailed, errors.New("the server did not end after the clone"))
	}
	s.closePool()
	return s.start(ctx, loaderStatements())
}

const (
	numberNotSupervised = 3707
	numberCloneDonor    = 3862
)

func cloneError(err error, password string) error {
	text := err.Error()
	if strings.Contains(text, password) {
		text = fmt.Sprintf("error %d (text withheld)", number(err))
	}
	wrapped := fmt.Errorf("clone: %s", clip(text, 400))
	switch {
	case number(err) == numberCloneDonor && strings.Contains(text, "1045"):
		return fail(SourceRefused, wrapped)
	case number(err) == numberCloneDonor:
		return fail(SourceLost, wrapped)
	}
	return fail(CloneFailed, wrapped)
}

// watch tells how far the clone is.
func (m *making) watch(ctx context.Context, pool *sql.DB) {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			var data, estimate sql.NullInt64
			if pool.QueryRowContext(ctx, "SELECT SUM(data), SUM(estimate) FROM performance_schema.clone_progress").Scan(&data, &estimate) == nil {
				m.report.set(data.Int64, estimate.Int64)
			}
		}
	}
}

// look asks the copy what it is.
func (m *making) look(ctx context.Context, s *server) (set gtid.Set, err error) {
	conn, err := s.conn(ctx)
	if err != nil {
		return set, err
	}
	defer func() { _ = conn.Close() }()
	var state, message, executed string
	var errno int
	err = conn.QueryRowContext(ctx, "SELECT state, error_no, error_message, @@GLOBAL.gtid_executed FROM performance_schema.clone_status").Scan(&state, &errno, &message, &executed)
	if err != nil {
		return set, fail(CloneFailed, fmt.Errorf("ask what became of the clone: %w", err))
	}
	if state != "Completed" || errno != 0 {
		return set, fail(CloneFailed, fmt.Errorf("the clone is %s: error %d: %s", state, errno, clip(message, 300)))
	}
	if set, err = gtid.Parse(executed); err != nil {
		return set, err
	}
	if m.facts.Counted = !m.config.SkipCounts; m.facts.Counted {
		m.facts.Tables, err = s.count(ctx, m.report)
	} else {
		m.facts.Tables, err = s.tablesOf(ctx)
	}
	if err != nil {
		return set, err
	}
	// Our account is no part of the backup. It goes last: the counting connects by it.
	return set, fail(ServerFailed, run(ctx, conn, "DROP USER '"+loader+"'@'localhost'"))
}

// store puts the directory into the storage, and the keyring, which is in no backup but an encrypted one.
func (m *making) store(ctx context.Context) error {
	dir := m.config.Server.Dir
	m.manifest.VolumeBytes = treeBytes(dir)
	m.report.begin(Storing, m.manifest.VolumeBytes)
	if file := m.config.Server.KeyringFile; file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return fail(ServerFailed, fmt.Errorf("read the keyring of the copy: %w", err))
		}
		if err := m.part(ctx, bucket.PartKeyring, func(w io.Writer) error { _, err := io.Copy(w, bytes.NewReader(raw)); return err }); err != nil {
			return err
		}
	}
	return m.part(ctx, partData, func(w io.Writer) error { return pack(ctx, dir, w) })
}

func (m *making) part(ctx context.Context, name string, write func(io.Writer) error) error {
	part, err := m.out.Part(ctx, name)
	if err != nil {
		return err
	}
	if err := write(&meter{to: part, report: m.report}); err != nil {
		part.Abort()
		return err
	}
	return part.Close()
}
