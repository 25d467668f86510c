// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// abortTimeout bounds the removal of what a failed backup has stored. What is left is swept.
const abortTimeout = 30 * time.Second

// Maker makes one backup.
type Maker struct {
	Config terms.Config
	Log    *slog.Logger
	Report *terms.Reporter
	// Version is noted in the manifest.
	Version string
}

// making is one backup on its way.
type making struct {
	Maker
	src      *source
	out      *bucket.Writer
	facts    terms.Facts
	manifest bucket.Manifest
	warnings []string
}

// Make makes a backup. It is there once this returns no error, and is none otherwise.
func (m Maker) Make(ctx context.Context) (terms.Result, error) {
	c := m.Config
	if err := check(c); err != nil {
		return terms.Result{}, err
	}
	b, err := bucket.Open(ctx, c.Bucket)
	if err != nil {
		return terms.Result{}, err
	}
	defer func() { _ = b.Close() }()
	// The storage first: a dump that can be put nowhere does not trouble the site.
	out, err := b.Create(ctx, bucket.NewBackup{Name: c.Backup, UID: c.GroupUID, Recipients: c.Recipients, Now: time.Now()})
	if bucket.KindOf(err) == bucket.Exists {
		return m.madeBefore(ctx, b, err)
	}
	if err != nil {
		return terms.Result{}, err
	}
	one := &making{Maker: m, out: out}
	m.Report.Stores(out.Stored)
	done, err := one.run(ctx)
	if err != nil {
		one.abort(ctx)
		return terms.Result{Warnings: one.warnings}, err
	}
	res := resultOf(done)
	res.Tables, res.Rows, res.Warnings = len(one.facts.Tables), one.facts.Rows(), one.warnings
	return res, nil
}

// resultOf is what a manifest says that was read in the storage.
func resultOf(read *bucket.Manifest) terms.Result {
	res := terms.Result{
		GTIDExecuted: read.GTIDExecuted, MySQLVersion: read.MySQLVersion, Encrypted: read.Encrypted, StoredBytes: read.StoredBytes(), ManifestRead: true,
	}
	for _, part := range read.Parts {
		res.Bytes += part.Bytes
	}
	return res
}

// madeBefore is for an attempt of ours whose outcome nobody heard, because its node was lost after the manifest was written: the backup is
// there, and it is proven by reading it, and by asking for everything that it names (I23). One of another group of the name is none of ours, and
// neither is one that was kept from an earlier MysqlBackup of the name.
func (m Maker) madeBefore(ctx context.Context, b *bucket.Bucket, exists error) (terms.Result, error) {
	stored, err := b.OpenStored(ctx, m.Config.Backup)
	if err != nil {
		return terms.Result{}, err
	}
	read := stored.Manifest
	if read.GroupUID != m.Config.GroupUID || read.Profile != m.Config.Profile || read.Method != m.Config.Method || m.Config.IsOlder(read) {
		return terms.Result{}, exists
	}
	if err := stored.Check(ctx); err != nil {
		return terms.Result{}, err
	}
	res := resultOf(read)
	res.Warnings = []string{"the backup was there already: an earlier attempt had stored it"}
	return res, nil
}

// abort removes what was stored, although everything else was ended.
func (m *making) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if err := m.out.Abort(ctx); err != nil {
		m.Log.Warn("what the failed backup stored is left for the sweep", "error", err.Error())
	}
}

func (m *making) run(ctx context.Context) (*bucket.Manifest, error) {
	c, started := m.Config, time.Now()
	m.Report.Begin(terms.Preparing, 0)
	src, err := reach(ctx, c.Source)
	if err != nil {
		return nil, err
	}
	m.src = src
	// Whatever ends this, nothing of ours stays on the site.
	defer src.close()
	defer func() { _ = src.end() }()
	stop := context.AfterFunc(ctx, func() { _ = src.end() })
	defer stop()
	f := src.facts
	m.facts.PageSize, m.facts.CaseNames, m.facts.DataFilePath = f.PageSize, f.CaseNames, f.DataFilePath
	m.manifest = bucket.Manifest{
		GroupUID: c.GroupUID, Profile: c.Profile, Method: c.Method, Site: c.Site, Epoch: c.Epoch, ServerUUID: f.UUID, MySQLVersion: f.Version,
		Operator: m.Version, DataEncrypted: c.Server.KeyringFile != "", VolumeBytes: f.DataBytes, StartedAt: started,
	}
	if err := m.readEvents(ctx); err != nil {
		return nil, err
	}
	var set gtid.Set
	if c.Method == bucket.Logical {
		set, err = m.logical(ctx)
	} else {
		set, err = m.physical(ctx)
	}
	if err != nil {
		return nil, err
	}
	m.Report.Begin(terms.Storing, 0)
	if err := terms.WriteFacts(ctx, m.out, m.facts); err != nil {
		return nil, err
	}
	m.manifest.GTIDExecuted, m.manifest.FinishedAt = set.String(), time.Now()
	if err := ctx.Err(); err != nil {
		return nil, err // the last moment to give way: after the next line there is a backup
	}
	return m.out.Commit(ctx, m.manifest)
}

// logical dumps under the backup lock, which is held for as long as mysqldump runs.
func (m *making) logical(ctx context.Context) (gtid.Set, error) {
	src := m.src
	var err error
	if m.manifest.Tool, err = toolVersion(ctx); err != nil {
		return gtid.Set{}, err
	}
	if err := src.lock(ctx, lockWait(m.Config.Source)); err != nil {
		return gtid.Set{}, err
	}
	schemas, err := src.schemas(ctx)
	if err != nil {
		return gtid.Set{}, err
	}
	if m.facts.Accounts, err = readAccounts(ctx, src.held); err != nil {
		return gtid.Set{}, src.explain(err)
	}
	if m.facts.Tablespaces, err = tablespaces(ctx, src.held); err != nil {
		return gtid.Set{}, src.explain(fmt.Errorf("list tablespaces: %w", err))
	}
	strangers, err := src.strangers(ctx)
	if err != nil {
		return gtid.Set{}, err
	}
	for _, s := range strangers {
		m.warnings = append(m.warnings, "not InnoDB, so its rows are of another moment than the snapshot: "+s)
	}
	if m.facts.Views, err = src.invalidViews(ctx); err != nil {
		return gtid.Set{}, err
	}
	if len(m.facts.Views) > 0 {
		m.warnings = append(m.warnings, warnInvalid(m.facts.Views))
	}
	if !src.seesXA {
		m.warnings = append(m.warnings, warnUnseenXA)
	}
	m.Report.Begin(terms.Dumping, src.facts.DataBytes)
	part, err := m.out.Part(ctx, terms.PartDump)
	if err != nil {
		return gtid.Set{}, err
	}
	set, err := m.dump(ctx, schemas, part)
	if err != nil {
		part.Abort()
		return gtid.Set{}, err
	}
	if err := errors.Join(src.checkTables(ctx, m.facts.Tables), src.unlock(ctx)); err != nil {
		part.Abort()
		return gtid.Set{}, err
	}
	return set, part.Close()
}

func (m *making) dump(ctx context.Context, schemas []string, part io.Writer) (gtid.Set, error) {
	if err := m.src.beginXA(ctx); err != nil {
		return gtid.Set{}, err
	}
	if len(schemas) == 0 {
		// mysqldump wants at least one. Under the lock no database comes, so the set of this moment fits.
		text, err := mysqld.Texts(ctx, m.src.held, "SELECT @@GLOBAL.gtid_executed")
		if err != nil {
			return gtid.Set{}, m.src.explain(err)
		}
		if err := m.src.checkXA(ctx); err != nil {
			return gtid.Set{}, err
		}
		m.facts.Counted = true
		if _, err := fmt.Fprintf(part, "SET @@GLOBAL.GTID_PURGED='+%s';\n", oneLine(text[0])); err != nil {
			return gtid.Set{}, err
		}
		return gtid.Parse(text[0])
	}
	text := options(m.Config.Source, m.src.password, m.facts.Views)
	set, tables, err := dump(ctx, text, m.src, schemas, m.Report.Meter(part))
	m.facts.Tables, m.facts.Counted = tables, true
	return set, err
}

// unlock lets the backup lock go. That it was still held is what makes the dump whole.
func (s *source) unlock(ctx context.Context) error {
	if err := mysqld.Run(ctx, s.held, "UNLOCK INSTANCE"); err != nil {
		return terms.Fail(terms.SourceLost, errors.Join(errors.New("the site ended the session that kept tables from being changed: the dump may be half of a change"), err))
	}
	return nil
}
