// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/backup/replay"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/volumelock"
)

// Loader loads one backup.
type Loader struct {
	// Config says in the end which backup it was, if it named none.
	Config terms.Config
	Log    *slog.Logger
	Report *terms.Reporter

	// reached is the set of GTIDs of the target, once it is settled.
	reached string
}

// loading is one backup on its way into a server.
type loading struct {
	*Loader
	backup   *bucket.Backup
	facts    terms.Facts
	server   *mysqld.Server
	warnings []string
	// eventsLeft is how many events do not run.
	eventsLeft int
	// encrypts is true if the tables of a dump are to be encrypted, whatever they were.
	encrypts bool
	// accounts are those of the group; see groupAccounts.
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
	return want, terms.Fail(terms.Reason(bucket.Damaged), err)
}

// Load makes the data directory of a backup. Until it returns no error the directory has its mark beside it, and is not whole; the next
// try starts from nothing.
//
// In a pod of a site it is asked again whenever the pod starts: what is loaded is not loaded again.
func (l *Loader) Load(ctx context.Context) (res terms.Result, err error) {
	unlock, err := l.lock(ctx, lockWait)
	if err != nil {
		return terms.Result{}, err
	}
	defer unlock()
	if before, err := l.loaded(); err != nil || before != nil {
		return before.told(), err
	}
	one, err := l.restore(ctx)
	if err != nil {
		return terms.Result{}, err
	}
	defer one.server.Kill()
	if err := one.finish(ctx); err != nil {
		return terms.Result{}, err
	}
	if err := one.server.Stop(); err != nil {
		return terms.Result{}, err
	}
	if err := one.sweepRelayLogs(); err != nil {
		return terms.Result{}, err
	}
	res = one.result().Bounded()
	res.Seconds = res.RestoreSeconds
	if c := l.Config; isSite(c) {
		// Before the mark goes: what is whole says what it is.
		if err := l.note(l.record(&res)); err != nil {
			return terms.Result{}, err
		}
	}
	return res, one.server.Settle()
}

// lockWait is how long the lock of a site's volume is waited for. The operator reads no logs: what failed tells it why, and the kubelet tries again.
const lockWait = 5 * time.Minute

// lock takes the lock of the site's volume. A pod that was deleted by force may still load, on a node that nobody reaches; without the lock
// each of the two would remove what the other has loaded. The lock ends with the load, before the bootstrap of this pod asks for it.
func (l *Loader) lock(ctx context.Context, within time.Duration) (func(), error) {
	dir := l.Config.Server.StateDir
	if dir == "" {
		return func() {}, nil
	}
	l.Report.Begin(terms.Preparing, 0)
	waits, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	unlock, err := volumelock.Take(waits, dir, l.Log)
	if err != nil && waits.Err() != nil && ctx.Err() == nil {
		err = terms.Fail(terms.Stalled, fmt.Errorf("the volume of the site could not be locked within %s: %w; look for another pod of this site, on a node that does not answer", within, err))
	}
	return unlock, err
}

func (l *loading) result() terms.Result {
	m := l.backup.Manifest
	res := terms.Result{
		Method: m.Method, GTIDExecuted: m.GTIDExecuted, MySQLVersion: m.MySQLVersion, Encrypted: m.Encrypted, StoredBytes: m.StoredBytes(),
		Tables: len(l.facts.Tables), Rows: l.facts.Rows(), RestoreSeconds: time.Since(l.began).Seconds(), Warnings: l.warnings,
	}
	for _, part := range m.Parts {
		res.Bytes += part.Bytes
	}
	l.tell(&res)
	return res
}

// restore brings the data into a server that runs on return, and has compared what is there with what the backup says.
func (l *Loader) restore(ctx context.Context) (_ *loading, err error) {
	c := l.Config
	if err := check(c); err != nil {
		return nil, err
	}
	l.Report.Begin(terms.Preparing, 0)
	b, err := bucket.Open(ctx, c.Bucket)
	if err != nil {
		return nil, err
	}
	way, err := l.choose(ctx, b)
	if err != nil {
		return nil, err
	}
	c = l.Config
	// It is read until the end of the program, which is that of the load.
	one := &loading{Loader: l, server: &mysqld.Server{Config: c.Server, Log: l.Log}, journey: way, began: time.Now()}
	l.Report.Watches(one.server.Work)
	if err := one.check(ctx, b); err != nil {
		return nil, err
	}
	if err := one.server.Clear(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			one.server.Kill()
		}
	}()
	if one.backup.Manifest.Method == bucket.Logical {
		err = one.logical(ctx)
	} else {
		err = one.physical(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := one.compare(ctx); err != nil {
		return nil, err
	}
	if err := one.replay(ctx); err != nil {
		return nil, err
	}
	if err := one.encryptRest(ctx); err != nil {
		return nil, err
	}
	one.warnOfEvents()
	return one, nil
}

// check looks at everything that can be known before anything is touched.
func (l *loading) check(ctx context.Context, b *bucket.Bucket) (err error) {
	c := l.Config
	if l.accounts, err = groupAccounts(c); err != nil {
		return err
	}
	ids, err := identities(c)
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
	own, err := mysqld.Version(ctx)
	if err != nil {
		return err
	}
	if err := mysqld.CheckVersion(m.MySQLVersion, own); err != nil {
		return err
	}
	if encrypted := c.Server.KeyringFile != ""; m.Method == bucket.Physical && m.DataEncrypted != encrypted {
		return terms.Fail(terms.EncryptionMismatch, fmt.Errorf("a Physical backup of a group with data-at-rest encryption fits one with it, and the reverse: "+
			"encrypted in the backup: %t, here: %t; make the new group with spec.encryptionAtRest.enabled: %[1]t, or restore a Logical backup", m.DataEncrypted, encrypted))
	}
	if l.facts, err = terms.ReadFacts(ctx, l.backup); err != nil {
		return err
	}
	if err := checkSettings(c.Server.DefaultsFile, m.Method, l.facts); err != nil {
		return err
	}
	need := m.VolumeBytes
	if l.journey != nil {
		need += replay.RelayLogBytes
	}
	return l.server.Room(need)
}

// finish gives the server to its group: its accounts, and nothing of ours.
func (l *loading) finish(ctx context.Context) error {
	conn, err := l.server.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for i, statement := range l.accounts {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return terms.Fail(terms.LoadFailed, fmt.Errorf("statement %d that sets the accounts of the group: error %d (text withheld)", i+1, mysqld.Number(err)))
		}
	}
	if err := mysqld.Leave(ctx, conn); err != nil {
		return terms.Fail(terms.LoadFailed, err)
	}
	want, err := l.target()
	if err != nil {
		return err
	}
	// Nothing of this may have left a transaction.
	var executed string
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&executed); err != nil {
		return terms.Fail(terms.ServerFailed, err)
	}
	if have, err := gtid.Parse(executed); err != nil || !have.Equal(want) {
		return terms.Fail(terms.Differs, errors.Join(errors.New("setting the accounts left a transaction"), err))
	}
	return nil
}
