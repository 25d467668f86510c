// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// list writes the manifests, one a line, and no progress.
func (p *Program) list(ctx context.Context) (terms.Result, error) {
	b, err := bucket.Open(ctx, p.Config.Bucket)
	if err != nil {
		return terms.Result{}, err
	}
	defer func() { _ = b.Close() }()
	entries, err := b.List(ctx)
	if err != nil {
		return terms.Result{}, err
	}
	for _, e := range entries {
		line := struct {
			Name     string           `json:"name"`
			Manifest *bucket.Manifest `json:"manifest,omitempty"`
			Error    string           `json:"error,omitempty"`
		}{Name: e.Name, Manifest: e.Manifest}
		if e.Err != nil {
			line.Error = e.Err.Error()
		}
		if err := json.NewEncoder(p.Out).Encode(line); err != nil {
			return terms.Result{}, err
		}
	}
	return terms.Result{}, nil
}

// remove removes one backup. One that is gone is no error: it may be asked again. Neither is one that is not ours: it stays, and of ours there is
// nothing.
func (p *Program) remove(ctx context.Context) (terms.Result, error) {
	if p.Config.Backup == "" {
		return terms.Result{}, terms.Fail(terms.BadConfig, fmt.Errorf("which backup is to be removed? set backup"))
	}
	b, err := bucket.Open(ctx, p.Config.Bucket)
	if err != nil {
		return terms.Result{}, err
	}
	defer func() { _ = b.Close() }()
	why, err := p.notOurs(ctx, b)
	if err != nil {
		return terms.Result{}, err
	}
	if why != "" {
		return terms.Result{Warnings: []string{why}}, nil
	}
	if err := b.Delete(ctx, p.Config.Backup); err != nil && bucket.KindOf(err) != bucket.NotFound {
		return terms.Result{}, err
	}
	return terms.Result{Removed: 1}, nil
}

// notOurs is why what lies under the name of the backup must not be removed: two groups of one name, in two clusters, give their backups the same names,
// and a backup that was kept from an earlier MysqlBackup of the name is not this one's. It is empty if it may be removed.
func (p *Program) notOurs(ctx context.Context, b *bucket.Bucket) (string, error) {
	foreign, err := p.foreign(ctx, b)
	if err != nil {
		return "", err
	}
	stored, err := b.OpenStored(ctx, p.Config.Backup)
	switch kind := bucket.KindOf(err); {
	case err == nil && p.Config.IsOlder(stored.Manifest):
		return "it was kept from an earlier MysqlBackup of this name, and stays", nil
	case err == nil && p.Config.GroupUID != "" && stored.Manifest.GroupUID == p.Config.GroupUID:
		return "", nil // it names us, so it is ours, also in a place that another group has taken since
	case err != nil && kind != bucket.NotFound && kind != bucket.Damaged && kind != bucket.TooNew:
		return "", err
	case foreign:
		return "the place is another group's, and what is there stays: nothing of it is this one's", nil
	}
	return "", nil
}

// foreign is true if the place is another group's.
func (p *Program) foreign(ctx context.Context, b *bucket.Bucket) (bool, error) {
	if p.Config.GroupUID == "" {
		return false, nil
	}
	return b.IsForeign(ctx, p.Config.GroupUID)
}

// sweepMin is the least age of what is swept, whatever was asked for: an attempt may still run.
const sweepMin = time.Hour

func (p *Program) sweep(ctx context.Context) (terms.Result, error) {
	b, err := bucket.Open(ctx, p.Config.Bucket)
	if err != nil {
		return terms.Result{}, err
	}
	defer func() { _ = b.Close() }()
	foreign, err := p.foreign(ctx, b)
	if err != nil {
		return terms.Result{}, err
	}
	if foreign {
		return terms.Result{Warnings: []string{"the place is another group's: nothing is swept"}}, nil
	}
	age := max(sweepMin, time.Duration(p.Config.OlderThanSeconds)*time.Second)
	swept, err := b.Sweep(ctx, time.Now().Add(-age))
	return terms.Result{Removed: swept.Objects + swept.Uploads, StoredBytes: swept.Bytes}, err
}
