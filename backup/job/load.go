// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mysql-mfg/mfg/backup/replay"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/application"
)

// accounts are statements that make the accounts of the group that is restored, and set root's password, whatever the backup brought. They
// leave no transaction, and hold passwords.
func (c Config) accounts() ([]string, error) {
	if c.AccountsDir == "" {
		return nil, nil
	}
	var a mysql.Accounts
	for name, into := range map[string]*string{
		"operator": &a.Operator, "replication": &a.Replication, "clone": &a.Clone, "sidecar": &a.Sidecar, "root": &a.Root,
	} {
		password, err := secret(filepath.Join(c.AccountsDir, name))
		if err != nil {
			return nil, fail(BadConfig, fmt.Errorf("read the password of the account %s of the group: %w", name, err))
		}
		*into = password
	}
	statements := mysql.ReplaceAccountStatements(a, c.RequireTLS)
	// What is wrong with the Secret of the application keeps no data from coming back: the operator says that the account does not fit.
	if app, is, err := application.Read(c.AccountsDir); is && err == nil {
		// The backup of a group has its account already, with another password than the Secret of the group that is restored.
		statements = append(statements, application.Statements(app)...)
	}
	return statements, nil
}

// loading is one backup on its way into a server.
type loading struct {
	*Program
	backup   *bucket.Backup
	facts    Facts
	server   *server
	warnings []string
	// accounts are those of the group; see Config.accounts.
	accounts []string
	// journey leads to a point behind the backup; nil without one.
	journey *journey
	// began is when the first byte was asked for.
	began time.Time
}

// target is what the server has executed at the end.
func (l *loading) target() (gtid.Set, error) {
	if l.journey != nil {
		return l.journey.road.Target, nil
	}
	want, err := gtid.Parse(l.backup.Manifest.GTIDExecuted)
	return want, fail(Reason(bucket.Damaged), err)
}

// Load makes the data directory of a backup. Until it returns no error the directory has its mark beside it, and is not whole; the next
// try starts from nothing.
//
// In a pod of a site it is asked again whenever the pod starts: what is loaded is not loaded again.
func (p *Program) Load(ctx context.Context) (res Result, err error) {
	if before, err := p.loaded(); err != nil || before != nil {
		return before.told(), err
	}
	l, err := p.restore(ctx)
	if err != nil {
		return Result{}, err
	}
	defer l.server.kill()
	if err := l.finish(ctx); err != nil {
		return Result{}, err
	}
	if err := l.server.stop(); err != nil {
		return Result{}, err
	}
	if err := l.sweepRelayLogs(); err != nil {
		return Result{}, err
	}
	res = l.result().bounded()
	res.Seconds = res.RestoreSeconds
	if c := p.Config; c.isSite() {
		// Before the mark goes: what is whole says what it is.
		if err := p.note(record{GroupUID: c.GroupUID, Location: c.Bucket.Location(), Backup: c.Backup, Point: c.point(), Reached: p.reached, Result: &res}); err != nil {
			return Result{}, err
		}
	}
	return res, settle(p.Config.Server.Dir)
}

func isThere(path string) (bool, error) {
	switch _, err := os.Stat(path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}

func (l *loading) result() Result {
	m := l.backup.Manifest
	res := Result{
		Method: m.Method, GTIDExecuted: m.GTIDExecuted, MySQLVersion: m.MySQLVersion, Encrypted: m.Encrypted, StoredBytes: m.StoredBytes(),
		Tables: len(l.facts.Tables), Rows: rowsOf(l.facts.Tables), RestoreSeconds: time.Since(l.began).Seconds(), Warnings: l.warnings,
	}
	for _, part := range m.Parts {
		res.Bytes += part.Bytes
	}
	l.tell(&res)
	return res
}

// restore brings the data into a server that runs on return, and has compared what is there with what the backup says.
func (p *Program) restore(ctx context.Context) (_ *loading, err error) {
	c := p.Config
	if err := c.checkLoad(); err != nil {
		return nil, err
	}
	p.report.begin(Preparing, 0)
	b, err := bucket.Open(ctx, c.Bucket)
	if err != nil {
		return nil, err
	}
	way, err := p.choose(ctx, b)
	if err != nil {
		return nil, err
	}
	c = p.Config
	// It is read until the end of the program, which is that of the load.
	l := &loading{Program: p, server: &server{config: c.Server, log: p.Log}, journey: way, began: time.Now()}
	if err := l.check(ctx, b); err != nil {
		return nil, err
	}
	if err := clear(c.Server.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.server.kill()
		}
	}()
	if l.backup.Manifest.Method == bucket.Logical {
		err = l.logical(ctx)
	} else {
		err = l.physical(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := l.compare(ctx); err != nil {
		return nil, err
	}
	if err := l.replay(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// check looks at everything that can be known before anything is touched.
func (l *loading) check(ctx context.Context, b *bucket.Bucket) (err error) {
	c := l.Config
	if l.accounts, err = c.accounts(); err != nil {
		return err
	}
	ids, err := c.identities()
	if err != nil {
		return err
	}
	if l.backup, err = b.OpenBackup(ctx, c.Backup, ids); err != nil {
		return err
	}
	if err := l.backup.Check(ctx); err != nil {
		return err
	}
	m := l.backup.Manifest
	own, err := localVersion(ctx)
	if err != nil {
		return err
	}
	if err := checkVersion(m.MySQLVersion, own); err != nil {
		return err
	}
	if encrypted := c.Server.KeyringFile != ""; m.Method == bucket.Physical && m.DataEncrypted != encrypted {
		return fail(EncryptionMismatch, fmt.Errorf("a Physical backup of a group with data-at-rest encryption fits one with it, and the reverse: "+
			"encrypted in the backup: %t, here: %t; restore into a group alike, or take a Logical backup", m.DataEncrypted, encrypted))
	}
	if l.facts, err = readFacts(ctx, l.backup); err != nil {
		return err
	}
	need := m.VolumeBytes
	if l.journey != nil {
		need += replay.RelayLogBytes
	}
	return room(c.Server.Dir, need)
}

// logical loads a dump into a fresh server.
func (l *loading) logical(ctx context.Context) error {
	s := l.server
	if l.Config.Server.DefaultsFile == "" {
		s.extra = append(s.extra, fmt.Sprintf("--lower-case-table-names=%d", l.facts.CaseNames))
	}
	if err := freshKeyring(l.Config.Server.KeyringFile); err != nil {
		return err
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	// The redo log is off while the data comes, and of use only for the rest.
	if err := s.start(ctx, loaderStatements()); err != nil {
		return err
	}
	conn, err := s.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	before := []string{"ALTER INSTANCE DISABLE INNODB REDO_LOG"}
	for _, t := range l.facts.Tablespaces {
		before = append(before, t.statement(l.Config.Server.KeyringFile != ""))
	}
	if err := run(ctx, conn, before...); err != nil {
		return fail(LoadFailed, fmt.Errorf("prepare the server: %w", err))
	}
	if err := l.stream(ctx); err != nil {
		return err
	}
	if l.warnings, err = loadAccounts(ctx, conn, l.facts.Accounts); err != nil {
		return fail(LoadFailed, err)
	}
	if err := l.restoreEvents(ctx, conn); err != nil {
		return err
	}
	return fail(LoadFailed, run(ctx, conn, "ALTER INSTANCE ENABLE INNODB REDO_LOG"))
}

// physical unpacks a data directory, with its keyring, and makes it another server.
func (l *loading) physical(ctx context.Context) error {
	if err := l.unpack(ctx); err != nil {
		return err
	}
	s := l.server
	if l.Config.Server.DefaultsFile == "" {
		s.extra = append(s.extra, fmt.Sprintf("--innodb-page-size=%d", l.facts.PageSize), fmt.Sprintf("--lower-case-table-names=%d", l.facts.CaseNames),
			"--innodb-data-file-path="+l.facts.DataFilePath)
	}
	if err := s.start(ctx, loaderStatements()); err != nil {
		return err
	}
	conn, err := s.conn(ctx)
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
	if err := run(ctx, conn, after...); err != nil {
		return fail(LoadFailed, err)
	}
	return l.restoreEvents(ctx, conn)
}

func binlogEncrypted(ctx context.Context, conn *sql.Conn) (on bool, err error) {
	err = conn.QueryRowContext(ctx, "SELECT @@GLOBAL.binlog_encryption AND @@GLOBAL.log_bin").Scan(&on)
	return on, fail(ServerFailed, err)
}

// freshKeyring removes what an earlier try left in the keyring's place: the data that needed it is gone.
func freshKeyring(file string) error {
	if file == "" {
		return nil
	}
	for _, name := range []string{file, file + ".backup"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(BadConfig, fmt.Errorf("remove what is left of a keyring: %w", err))
		}
	}
	return nil
}

func (l *loading) unpack(ctx context.Context) error {
	if file := l.Config.Server.KeyringFile; file != "" {
		if err := freshKeyring(file); err != nil {
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
			return fail(BadConfig, fmt.Errorf("put the keyring into memory: %w", err))
		}
	}
	part, _ := l.backup.Manifest.Part(partData)
	l.report.begin(Unpacking, part.Bytes)
	in, err := l.backup.Part(ctx, partData)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return unpack(ctx, l.Config.Server.Dir, &countReader{from: in, report: l.report})
}

type countReader struct {
	from   io.Reader
	report *reporter
}

func (r *countReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.report.add(int64(n))
	return n, err
}

// compare asks the server whether it holds what the backup says.
func (l *loading) compare(ctx context.Context) error {
	want, err := gtid.Parse(l.backup.Manifest.GTIDExecuted)
	if err != nil {
		return fail(Reason(bucket.Damaged), err)
	}
	if err := l.compareGTID(ctx, want); err != nil {
		return err
	}
	if !l.facts.Counted {
		have, err := l.server.tablesOf(ctx)
		if err != nil {
			return err
		}
		return compare(l.facts.Tables, have)
	}
	have, err := l.server.count(ctx, l.report)
	if err != nil {
		return err
	}
	return compare(l.facts.Tables, have)
}

func (l *loading) compareGTID(ctx context.Context, want gtid.Set) error {
	var executed string
	if err := l.server.pool.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&executed); err != nil {
		return fail(ServerFailed, err)
	}
	have, err := gtid.Parse(executed)
	if err != nil {
		return err
	}
	if !have.Equal(want) {
		return fail(Differs, fmt.Errorf("the server has executed %.200q, and the backup holds %.200q", have.String(), want.String()))
	}
	return nil
}

// finish gives the server to its group: its accounts, and nothing of ours.
func (l *loading) finish(ctx context.Context) error {
	conn, err := l.server.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for i, statement := range l.accounts {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fail(LoadFailed, fmt.Errorf("statement %d that sets the accounts of the group: error %d (text withheld)", i+1, number(err)))
		}
	}
	if err := run(ctx, conn, "DROP USER '"+loader+"'@'localhost'"); err != nil {
		return fail(LoadFailed, err)
	}
	want, err := l.target()
	if err != nil {
		return err
	}
	// Nothing of this may have left a transaction.
	var executed string
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&executed); err != nil {
		return fail(ServerFailed, err)
	}
	if have, err := gtid.Parse(executed); err != nil || !have.Equal(want) {
		return fail(Differs, errors.Join(errors.New("setting the accounts left a transaction"), err))
	}
	return nil
}
