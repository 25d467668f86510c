// SPDX-License-Identifier: Apache-2.0

package job

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// kept makes an encrypted backup in a folder.
func kept(t *testing.T) (bucket.Config, string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	c := bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"}
	b, err := bucket.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: "monday", UID: "u1", Recipients: []string{id.Recipient().String()}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	part, err := w.Part(t.Context(), terms.PartDump)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(part, "INSERT INTO t VALUES ('plaintext');")
	if err = errors.Join(err, part.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context(), bucket.Manifest{Method: bucket.Logical, Site: "paris", MySQLVersion: "9.7.4", StartedAt: now, FinishedAt: now.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	return c, c.Folder
}

func fetched(t *testing.T, c terms.Config) (int, []byte, string) {
	t.Helper()
	var out, log bytes.Buffer
	p := &Program{Config: c, Out: &out, Log: slog.New(slog.NewJSONHandler(&log, nil))}
	return p.Run(t.Context(), "fetch"), out.Bytes(), log.String()
}

// TestFetch: the output is a tar of what is stored and nothing else, without any identity.
func TestFetch(t *testing.T) {
	place, folder := kept(t)
	code, out, said := fetched(t, terms.Config{Bucket: place, Backup: "monday"})
	if code != terms.ExitSucceeded {
		t.Fatalf("exit code %d: %s", code, said)
	}
	r, names := tar.NewReader(bytes.NewReader(out)), []string{}
	for {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, head.Name)
		raw, err := io.ReadAll(r)
		if err != nil || head.Name != "manifest.json" && !bytes.HasPrefix(raw, []byte("age-encryption.org/v1\n")) {
			t.Errorf("%s: %v, %d bytes", head.Name, err, len(raw))
		}
	}
	if strings.Join(names, " ") != "manifest.json dump.00000" || bytes.Contains(out, []byte("plaintext")) {
		t.Errorf("%v", names)
	}
	// A flipped byte: it is said, and the tar does not end properly.
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "dump.") {
			raw, failed := os.ReadFile(path)
			raw[len(raw)-1] ^= 1
			return errors.Join(failed, os.WriteFile(path, raw, 0o600))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, out, said := fetched(t, terms.Config{Bucket: place, Backup: "monday"}); code != terms.ExitDamaged || !strings.Contains(said, "another digest") || bytes.HasSuffix(out, make([]byte, 1024)) {
		t.Errorf("exit code %d: %s", code, said)
	}
}

func TestFetchRefused(t *testing.T) {
	place, _ := kept(t)
	for name, want := range map[string]int{"": terms.ExitConfig, "friday": terms.ExitStorage, "../x": terms.ExitStorage} {
		if code, out, said := fetched(t, terms.Config{Bucket: place, Backup: name}); code != want || len(out) > 0 {
			t.Errorf("%q: exit code %d, %d bytes: %s", name, code, len(out), said)
		}
	}
}
