// SPDX-License-Identifier: Apache-2.0

package making

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

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

const (
	// cloneEnd bounds the time that mysqld takes to end once it has the copy.
	cloneEnd = 10 * time.Minute
	// watchInterval is how often it is looked how far the clone is.
	watchInterval = time.Second
)

// physical clones the site into a mysqld here, ends that, and stores its directory. The copy is an InnoDB snapshot like any clone; once it
// is here the site has nothing more to do with it.
func (m *making) physical(ctx context.Context) (set gtid.Set, err error) {
	c, f := m.Config, m.src.facts
	own, err := mysqld.Version(ctx)
	if err != nil {
		return set, err
	}
	m.manifest.Tool = "CLONE into mysqld " + own
	if mysqld.Series(own) != mysqld.Series(f.Version) {
		return set, terms.Fail(terms.BadConfig, fmt.Errorf("the site runs MySQL %s, and the image of this Job has %s: CLONE copies within one series", f.Version, own))
	}
	s := &mysqld.Server{Config: c.Server, Log: m.Log, Extra: []string{
		"--innodb-page-size=" + strconv.FormatInt(f.PageSize, 10), "--lower-case-table-names=" + strconv.FormatInt(f.CaseNames, 10),
		"--innodb-data-file-path=" + f.DataFilePath,
	}}
	if err := s.Room(f.DataBytes); err != nil {
		return set, err
	}
	if err := s.Clear(); err != nil {
		return set, err
	}
	m.Report.Begin(terms.Preparing, 0)
	if err := s.FreshKeyring(); err != nil {
		return set, err
	}
	if err := s.Initialise(ctx); err != nil {
		return set, err
	}
	s.Extra = append(s.Extra, "--plugin-load-add=mysql_clone.so")
	if c.Source.CAFile != "" {
		s.Extra = append(s.Extra, "--clone-ssl-ca="+c.Source.CAFile)
	}
	defer func() {
		if err != nil {
			s.Kill()
		}
	}()
	if err := m.clone(ctx, s); err != nil {
		return set, err
	}
	if set, err = m.look(ctx, s); err != nil {
		return set, err
	}
	if err := s.Stop(); err != nil {
		return set, err
	}
	return set, m.store(ctx, s)
}

// clone runs CLONE until the server has started again with the copy.
func (m *making) clone(ctx context.Context, s *mysqld.Server) error {
	src := m.Config.Source
	if err := s.Start(ctx); err != nil {
		return err
	}
	conn, err := s.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	donor := fmt.Sprintf("%s:%d", src.Host, src.Port)
	if _, err := conn.ExecContext(ctx, "SET GLOBAL clone_valid_donor_list = ?", donor); err != nil {
		return terms.Fail(terms.BadConfig, fmt.Errorf("name the donor: %w", err))
	}
	m.Report.Begin(terms.Cloning, m.src.facts.DataBytes)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go m.watch(watched, s.Pool())
	statement := fmt.Sprintf("CLONE INSTANCE FROM ?@?:%d IDENTIFIED BY ?", src.Port)
	if src.CAFile != "" {
		statement += " REQUIRE SSL"
	}
	_, err = conn.ExecContext(ctx, statement, src.User, src.Host, m.src.password)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if n := mysqld.Number(err); n != 0 && n != numberNotSupervised {
		return cloneError(err, m.src.password)
	}
	// Whatever the connection came to: the server ends, and its own record says what happened.
	select {
	case <-s.Done():
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(cloneEnd):
		return terms.Fail(terms.CloneFailed, errors.New("the server did not end after the clone"))
	}
	s.Disconnect()
	return s.Start(ctx)
}

const (
	numberNotSupervised = 3707
	numberCloneDonor    = 3862
)

func cloneError(err error, password string) error {
	text := err.Error()
	if strings.Contains(text, password) {
		text = fmt.Sprintf("error %d (text withheld)", mysqld.Number(err))
	}
	wrapped := fmt.Errorf("clone: %s", terms.Clip(text, 400))
	switch {
	case mysqld.Number(err) == numberCloneDonor && strings.Contains(text, "1045"):
		return terms.Fail(terms.SourceRefused, wrapped)
	case mysqld.Number(err) == numberCloneDonor:
		return terms.Fail(terms.SourceLost, wrapped)
	}
	return terms.Fail(terms.CloneFailed, wrapped)
}

// watch tells how far the clone is.
func (m *making) watch(ctx context.Context, pool *sql.DB) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			var data, estimate sql.NullInt64
			if pool.QueryRowContext(ctx, "SELECT SUM(data), SUM(estimate) FROM performance_schema.clone_progress").Scan(&data, &estimate) == nil {
				m.Report.Set(data.Int64, estimate.Int64)
			}
		}
	}
}

// look asks the copy what it is.
func (m *making) look(ctx context.Context, s *mysqld.Server) (set gtid.Set, err error) {
	conn, err := s.Conn(ctx)
	if err != nil {
		return set, err
	}
	defer func() { _ = conn.Close() }()
	var state, message, executed string
	var errno int
	err = conn.QueryRowContext(ctx, "SELECT state, error_no, error_message, @@GLOBAL.gtid_executed FROM performance_schema.clone_status").Scan(&state, &errno, &message, &executed)
	if err != nil {
		return set, terms.Fail(terms.CloneFailed, fmt.Errorf("ask what became of the clone: %w", err))
	}
	if state != "Completed" || errno != 0 {
		return set, terms.Fail(terms.CloneFailed, fmt.Errorf("the clone is %s: error %d: %s", state, errno, terms.Clip(message, 300)))
	}
	if set, err = gtid.Parse(executed); err != nil {
		return set, err
	}
	if m.facts.Counted = !m.Config.SkipCounts; m.facts.Counted {
		m.facts.Tables, err = s.Count(ctx, m.Report)
	} else {
		m.facts.Tables, err = s.Tables(ctx)
	}
	if err != nil {
		return set, err
	}
	// Our account is no part of the backup. It goes last: the counting connects by it.
	return set, terms.Fail(terms.ServerFailed, mysqld.Leave(ctx, conn))
}

// store puts the directory into the storage, and the keyring, which is in no backup but an encrypted one.
func (m *making) store(ctx context.Context, s *mysqld.Server) error {
	dir := m.Config.Server.Dir
	m.manifest.VolumeBytes = s.Bytes()
	m.Report.Begin(terms.Storing, m.manifest.VolumeBytes)
	if file := m.Config.Server.KeyringFile; file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return terms.Fail(terms.ServerFailed, fmt.Errorf("read the keyring of the copy: %w", err))
		}
		if err := m.part(ctx, bucket.PartKeyring, func(w io.Writer) error { _, err := io.Copy(w, bytes.NewReader(raw)); return err }); err != nil {
			return err
		}
	}
	return m.part(ctx, terms.PartData, func(w io.Writer) error { return pack(ctx, dir, w) })
}

func (m *making) part(ctx context.Context, name string, write func(io.Writer) error) error {
	part, err := m.out.Part(ctx, name)
	if err != nil {
		return err
	}
	if err := write(m.Report.Meter(part)); err != nil {
		part.Abort()
		return err
	}
	return part.Close()
}
