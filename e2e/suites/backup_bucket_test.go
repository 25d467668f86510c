// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// dir is the bucket, as files on this machine.
func (p *backupStory) dir(t *testing.T) string {
	t.Helper()
	dir, err := p.s3.Dir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// nothingReadable looks for the marker in the bucket. It is compressed before it is encrypted, so that no search finds it in a file even
// where there is no encryption: what shows that the search is worth something is the backup in the clear, in which it is found by
// whoever reads it as we write it; the same reader gets nothing out of the other one without its identity.
func (p *backupStory) nothingReadable(t *testing.T) {
	t.Helper()
	if found, err := p.readable(t, controlPrefix, "control"); err != nil || !found {
		t.Errorf("the marker is not found in the backup in the clear, so the search shows nothing: %v", err)
	}
	if found, err := p.readable(t, backupPrefix, "first"); found || bucket.KindOf(err) != bucket.WrongIdentity {
		t.Errorf("the encrypted backup was read without its identity: marker found %t, error %v", found, err)
	}
	encrypted := 0
	root := filepath.Join(p.dir(t), backupPrefix)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(raw, []byte(p.marker)) || bytes.Contains(raw, []byte(p.id.String())) {
			t.Errorf("the marker or the identity is in %s", path)
		}
		if slices.Contains([]string{"manifest.json", "owner.json"}, d.Name()) {
			return nil
		}
		encrypted++
		if !bytes.HasPrefix(raw, []byte("age-encryption.org/v1\n")) {
			t.Errorf("%s is not encrypted by age", path)
		}
		return nil
	})
	if err != nil || encrypted == 0 {
		t.Errorf("%d encrypted objects in %s: %v", encrypted, root, err)
	}
}

// readable reads all parts of a backup as our own program does, without an identity, and looks for the marker in them.
func (p *backupStory) readable(t *testing.T, prefix, name string) (bool, error) {
	t.Helper()
	b, err := bucket.Open(t.Context(), bucket.Config{Folder: p.dir(t), Prefix: prefix, Namespace: backupNamespace, Group: backupGroup})
	if err != nil {
		return false, err
	}
	defer func() { _ = b.Close() }()
	k, err := b.OpenBackup(t.Context(), name, bucket.Identities{})
	if err != nil {
		return false, err
	}
	for _, part := range k.Manifest.Parts {
		r, err := k.Part(t.Context(), part.Name)
		if err != nil {
			return false, err
		}
		raw, err := io.ReadAll(io.LimitReader(r, 1<<30))
		_ = r.Close()
		if err != nil {
			return false, err
		}
		if bytes.Contains(raw, []byte(p.marker)) {
			return true, nil
		}
	}
	return false, nil
}
