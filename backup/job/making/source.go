// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	dialTimeout = 10 * time.Second
	// askTimeout bounds what is asked of a site before anything is copied.
	askTimeout = 2 * time.Minute
)

// source is the site that is copied. Two connections stand from the beginning to the end: one holds the backup lock, the other is there
// to end the sessions, for which it must not have to ask to be let in.
type source struct {
	pool *sql.DB
	// held is only used from one goroutine; killer only by end.
	held, killer *sql.Conn
	// ending holds a token while sessions are being ended.
	ending   chan struct{}
	password string
	facts    serverFacts
	// seesXA is true if the account may see prepared XA transactions; endedXA is what beginXA counted.
	seesXA  bool
	endedXA int64
}

// serverFacts are what is to be known of the site.
type serverFacts struct {
	Version, UUID       string
	PageSize, CaseNames int64
	DataFilePath        string
	DataBytes           int64
}

// target is the site as it is connected to.
func target(s terms.Source) (mysql.Target, error) {
	password, err := terms.Secret(s.PasswordFile)
	if err != nil {
		return mysql.Target{}, terms.Fail(terms.BadConfig, fmt.Errorf("read the password of the account for backups: %w", err))
	}
	t := mysql.Target{
		Addr: net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), User: s.User, Password: password, DialTimeout: dialTimeout, Program: "mfg backup",
		Unbounded: true, // it lists whatever the group has, in a pod of its own
	}
	if s.CAFile != "" {
		raw, err := os.ReadFile(s.CAFile)
		if err != nil {
			return t, terms.Fail(terms.BadConfig, fmt.Errorf("read the certificate authority of the group: %w", err))
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(raw) {
			return t, terms.Fail(terms.BadConfig, fmt.Errorf("%s holds no certificate", s.CAFile))
		}
		t.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: s.Host}
	}
	return t, nil
}

// reach connects to the site, and asks whether it lets us make a whole backup.
func reach(ctx context.Context, s terms.Source) (_ *source, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	to, err := target(s)
	if err != nil {
		return nil, err
	}
	pool, err := mysql.Pool(to)
	if err != nil {
		return nil, terms.Fail(terms.BadConfig, err)
	}
	src := &source{pool: pool, password: to.Password, ending: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			src.close()
		}
	}()
	for _, into := range []**sql.Conn{&src.killer, &src.held} {
		if *into, err = pool.Conn(ctx); err != nil {
			return nil, src.explain(fmt.Errorf("reach site at %s: %w", to.Addr, err))
		}
		// Both are idle for as long as the dump takes.
		if err := mysqld.Run(ctx, *into, "SET SESSION wait_timeout = 2000000, SESSION max_execution_time = 0, SESSION sql_mode = '', SESSION time_zone = '+00:00'"); err != nil {
			return nil, src.explain(err)
		}
	}
	if err := src.checkRights(ctx); err != nil {
		return nil, err
	}
	return src, src.explain(src.readFacts(ctx))
}

// lockWait is how many seconds the beginning of a dump may wait for statements that run on the site.
func lockWait(s terms.Source) int {
	if s.LockWaitSeconds <= 0 {
		return 10
	}
	return s.LockWaitSeconds
}

func (s *source) close() {
	for _, c := range []*sql.Conn{s.held, s.killer} {
		if c != nil {
			_ = c.Close()
		}
	}
	_ = s.pool.Close()
}

// Error numbers of servers.
const (
	numberTooMany          = 1040
	numberAccessDenied     = 1045
	numberNoSuchThread     = 1094
	numberLockWait         = 1205
	numberUserLimit        = 1226
	numberRightMissing     = 1227
	numberConnectionKilled = 1317
	numberOffline          = 3032
	numberAccountLocked    = 3118
	numberSecureTransport  = 3159
)

// explain gives what the site answered its reason.
func (s *source) explain(err error) error {
	switch mysqld.Number(err) {
	case 0:
		if err != nil && s.facts.UUID != "" {
			return terms.Fail(terms.SourceLost, err)
		}
		return terms.Fail(terms.SourceUnreachable, err)
	case numberAccessDenied, numberRightMissing, numberAccountLocked, numberSecureTransport:
		return terms.Fail(terms.SourceRefused, err)
	case numberLockWait:
		return terms.Fail(terms.SourceBusy, err)
	case numberOffline, numberConnectionKilled, numberTooMany, numberUserLimit:
		return terms.Fail(terms.SourceLost, err)
	}
	return terms.Fail(terms.Failed, err)
}

// checkRights refuses an account that would leave something out: mysqldump says nothing of triggers and routines that it may not see.
func (s *source) checkRights(ctx context.Context) error {
	rows, err := mysqld.Texts(ctx, s.held, "SHOW GRANTS")
	if err != nil {
		return s.explain(err)
	}
	var have []string
	for _, grant := range rows {
		before, _, found := strings.Cut(grant, " ON *.* TO ")
		if !found {
			continue
		}
		for right := range strings.SplitSeq(strings.TrimPrefix(before, "GRANT "), ",") {
			have = append(have, strings.TrimSpace(right))
		}
	}
	s.seesXA = slices.Contains(have, rightXA)
	var lacks []string
	for _, right := range mysql.BackupRights {
		// A site that has not restarted since an update has not given the right to see XA transactions: a backup is worth more than that look.
		if !slices.Contains(have, right) && right != rightXA {
			lacks = append(lacks, right)
		}
	}
	if len(lacks) > 0 {
		return terms.Fail(terms.SourceRefused, fmt.Errorf("the account for backups lacks %s: without them something would be left out", strings.Join(lacks, ", ")))
	}
	return nil
}

func (s *source) readFacts(ctx context.Context) error {
	f := &s.facts
	var gtids string
	err := s.held.QueryRowContext(ctx, "SELECT @@version, @@innodb_page_size, @@lower_case_table_names, @@innodb_data_file_path, @@gtid_mode, "+
		"(SELECT IFNULL(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE table_schema NOT IN ('sys', 'information_schema', 'performance_schema'))").
		Scan(&f.Version, &f.PageSize, &f.CaseNames, &f.DataFilePath, &gtids, &f.DataBytes)
	if err != nil {
		return fmt.Errorf("ask site: %w", err)
	}
	if gtids != "ON" {
		return terms.Fail(terms.SourceRefused, fmt.Errorf("gtid_mode of the site is %s: a backup without GTIDs has no place in the history", gtids))
	}
	return s.held.QueryRowContext(ctx, "SELECT @@server_uuid").Scan(&f.UUID)
}

// lock keeps tables, databases and accounts from being changed, dropped or made until the dump has ended. Rows may be written. MySQL's
// snapshots do not cover definitions: without it, a table that is dropped after the snapshot would be missing from a backup whose GTID set
// says that it was there.
func (s *source) lock(ctx context.Context, wait int) error {
	err := mysqld.Run(ctx, s.held, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", wait), "LOCK INSTANCE FOR BACKUP")
	if mysqld.Number(err) == numberLockWait {
		return terms.Fail(terms.SourceBusy, fmt.Errorf("a change of a table has run on the site for more than %d s: try again once it is done", wait))
	}
	return s.explain(err)
}

func (s *source) schemas(ctx context.Context) ([]string, error) {
	names, err := mysqld.Texts(ctx, s.held, "SELECT schema_name FROM information_schema.schemata WHERE "+mysqld.UserSchemas+" ORDER BY schema_name")
	return names, s.explain(err)
}

// strangers are tables whose rows are in no snapshot, because they are not InnoDB's.
func (s *source) strangers(ctx context.Context) ([]string, error) {
	names, err := mysqld.Texts(ctx, s.held, "SELECT CONCAT(table_schema, '.', table_name, ' (', engine, ')') FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND "+
		"engine NOT IN ('InnoDB', 'BLACKHOLE', 'FEDERATED') AND "+strings.ReplaceAll(mysqld.UserSchemas, "schema_name", "table_schema")+" ORDER BY 1 LIMIT 10")
	return names, s.explain(err)
}

// tablespaces are the general ones, which mysqldump leaves out.
func tablespaces(ctx context.Context, conn *sql.Conn) (out []terms.Tablespace, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT name, IF(zip_page_size > 0, zip_page_size, 0), encryption = 'Y' FROM information_schema.innodb_tablespaces "+
		"WHERE space_type = 'General' AND name <> 'mysql' ORDER BY name")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var t terms.Tablespace
		if err := rows.Scan(&t.Name, &t.BlockBytes, &t.Encrypted); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}
