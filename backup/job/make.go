// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// abortTimeout bounds the removal of what a failed backup has stored. What is left is swept.
const abortTimeout = 30 * time.Second

// making is one backup on its way.
type making struct {
	config   Config
	log      *slog.Logger
	report   *reporter
	src      *source
	out      *bucket.Writer
	facts    Facts
	manifest bucket.Manifest
	warnings []string
	version  string
}

// Make makes a backup. It is there once this returns no error, and is none otherwise.
func (p *Program) Make(ctx context.Context) (Result, error) {
	c := p.Config
	if err := c.checkMake(); err != nil {
		return Result{}, err
	}
	b, err := bucket.Open(ctx, c.Bucket)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = b.Close() }()
	// The storage first: a dump that can be put nowhere does not trouble the site.
	out, err := b.Create(ctx, bucket.NewBackup{Name: c.Backup, UID: c.GroupUID, Recipients: c.Recipients, Now: time.Now()})
	if bucket.KindOf(err) == bucket.Exists {
		return p.madeBefore(ctx, b, err)
	}
	if err != nil {
		return Result{}, err
	}
	m := &making{config: c, log: p.Log, report: p.report, out: out, version: p.Version}
	p.report.stored = out.Stored
	done, err := m.run(ctx)
	if err != nil {
		m.abort(ctx)
		return Result{Warnings: m.warnings}, err
	}
	res := resultOf(done)
	res.Tables, res.Rows, res.Warnings = len(m.facts.Tables), rowsOf(m.facts.Tables), m.warnings
	return res, nil
}

// resultOf is what a manifest says that was read in the storage.
func resultOf(read *bucket.Manifest) Result {
	res := Result{
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
func (p *Program) madeBefore(ctx context.Context, b *bucket.Bucket, exists error) (Result, error) {
	stored, err := b.OpenStored(ctx, p.Config.Backup)
	if err != nil {
		return Result{}, err
	}
	read := stored.Manifest
	if read.GroupUID != p.Config.GroupUID || read.Profile != p.Config.Profile || read.Method != p.Config.Method || p.Config.isOlder(read) {
		return Result{}, exists
	}
	if err := stored.Check(ctx); err != nil {
		return Result{}, err
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
		m.log.Warn("what the failed backup stored is left for the sweep", "error", err.Error())
	}
}

func (m *making) run(ctx context.Context) (*bucket.Manifest, error) {
	c, started := m.config, time.Now()
	m.report.begin(Preparing, 0)
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
		Operator: m.version, DataEncrypted: c.Server.KeyringFile != "", VolumeBytes: f.DataBytes, StartedAt: started,
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
	m.report.begin(Storing, 0)
	if err := writeFacts(ctx, m.out, m.facts); err != nil {
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
	if err := src.lock(ctx, m.config.Source.lockWait()); err != nil {
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
	m.report.begin(Dumping, src.facts.DataBytes)
	part, err := m.out.Part(ctx, partDump)
	if err != nil {
		return gtid.Set{}, err
	}
	set, err := m.dump(ctx, schemas, part)
	if err != nil {
		part.Abort()
		return gtid.Set{}, err
	}
	if err := src.unlock(ctx); err != nil {
		part.Abort()
		return gtid.Set{}, err
	}
	return set, part.Close()
}

func (m *making) dump(ctx context.Context, schemas []string, part io.Writer) (gtid.Set, error) {
	if len(schemas) == 0 {
		// mysqldump wants at least one. Under the lock no database comes, so the set of this moment fits.
		text, err := texts(ctx, m.src.held, "SELECT @@GLOBAL.gtid_executed")
		if err != nil {
			return gtid.Set{}, m.src.explain(err)
		}
		m.facts.Counted = true
		if _, err := fmt.Fprintf(part, "SET @@GLOBAL.GTID_PURGED='+%s';\n", oneLine(text[0])); err != nil {
			return gtid.Set{}, err
		}
		return gtid.Parse(text[0])
	}
	set, tables, err := dump(ctx, m.config.Source, m.src, schemas, &meter{to: part, report: m.report})
	m.facts.Tables, m.facts.Counted = tables, true
	return set, err
}

// unlock lets the backup lock go. That it was still held is what makes the dump whole.
func (s *source) unlock(ctx context.Context) error {
	if err := run(ctx, s.held, "UNLOCK INSTANCE"); err != nil {
		return fail(SourceLost, errors.Join(errors.New("the site ended the session that kept tables from being changed: the dump may be half of a change"), err))
	}
	return nil
}

// meter counts what is written.
type meter struct {
	to     io.Writer
	report *reporter
}

func (w *meter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.report.add(int64(n))
	return n, err
}
