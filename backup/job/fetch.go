// SPDX-License-Identifier: Apache-2.0

package job

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// fetch writes one backup to the output as a tar: manifest.json first, then every object as it lies in the storage, in the order of the
// manifest. Nothing is opened: what is encrypted stays so. A tar that does not end properly is no backup.
func (p *Program) fetch(ctx context.Context) (terms.Result, error) {
	if p.Config.Backup == "" {
		return terms.Result{}, terms.Fail(terms.BadConfig, errors.New("which backup is to be fetched? set backup"))
	}
	b, err := bucket.Open(ctx, p.Config.Bucket)
	if err != nil {
		return terms.Result{}, err
	}
	defer func() { _ = b.Close() }()
	s, err := b.OpenStored(ctx, p.Config.Backup)
	if err != nil {
		return terms.Result{}, err
	}
	manifest, err := json.Marshal(s.Manifest)
	if err != nil {
		return terms.Result{}, fmt.Errorf("encode the manifest: %w", err)
	}
	out := tar.NewWriter(p.Out)
	if err := out.WriteHeader(&tar.Header{Name: "manifest.json", Mode: 0o600, Size: int64(len(manifest)), ModTime: s.Manifest.FinishedAt}); err != nil {
		return terms.Result{}, err
	}
	if _, err := out.Write(manifest); err != nil {
		return terms.Result{}, err
	}
	for _, part := range s.Manifest.Parts {
		for _, o := range part.Objects {
			if err := out.WriteHeader(&tar.Header{Name: path.Base(o.Key), Mode: 0o600, Size: o.Bytes, ModTime: s.Manifest.FinishedAt}); err != nil {
				return terms.Result{}, err
			}
			if err := s.Copy(ctx, out, o); err != nil {
				return terms.Result{}, err
			}
		}
	}
	return terms.Result{StoredBytes: s.Manifest.StoredBytes()}, out.Close()
}
