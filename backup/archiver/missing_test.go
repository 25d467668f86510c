// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// stored is an archive in a folder with these files, each with one byte.
func stored(t *testing.T, files ...archive.LogManifest) (*archive.Archive, string) {
	t.Helper()
	dir := t.TempDir()
	a, err := archive.Open(t.Context(), bucket.Config{Folder: dir, Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	for _, m := range files {
		f, err := a.Create(t.Context(), m, archive.Recipients{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Commit(t.Context(), archive.Content{SeenAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	return a, filepath.Join(dir, "shop", "orders", "archive", "binlogs")
}

func listing(t *testing.T, a *archive.Archive) archive.Listing {
	t.Helper()
	l, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func sealedLog(epoch int64, name string) archive.LogManifest {
	return archive.LogManifest{Epoch: epoch, Site: "a", ServerUUID: serverOurs, Log: name, Sealed: true}
}

// Of what is missing in the storage, the archiver makes room for what its server still has, and only in its own folder; the rest stays told as missing.
func TestWhatIsMissingCanBeArchivedAgain(t *testing.T) {
	files := []archive.LogManifest{sealedLog(1, "binlog.000001"), sealedLog(2, "binlog.000001"), sealedLog(2, "binlog.000002"), sealedLog(2, "binlog.000003")}
	a, dir := stored(t, files...)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".json") && !strings.Contains(path, "binlog.000003") {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &work{p: &Program{config: Config{}, log: slog.New(slog.DiscardHandler)}, archive: a, epoch: 2, uuid: serverOurs}
	w.p.config.Site = "a"
	l, removed, err := w.clearMissing(t.Context(), listing(t, a), serverState{Logs: []string{"binlog.000002", "binlog.000003"}})
	if err != nil || removed != 1 || len(l.Missing) != 2 || l.Missing[0].Epoch != 1 || l.Missing[1].Log != "binlog.000001" || w.missed != 3 {
		t.Errorf("%v: %d removed, missing %+v of %d", err, removed, l.Missing, w.missed)
	}
	if again := listing(t, a); len(again.Missing) != 2 || len(again.Logs) != 1 {
		t.Errorf("left are %d files, and %d missing", len(again.Logs), len(again.Missing))
	}
	// It is not archived over and over while its manifest is there, and it is told as missing.
	d := newLedger(l, w.folder())
	if told := d.listing(); !d.held("binlog.000001").Sealed || d.held("binlog.000002").Sealed || len(told.Missing) != 2 {
		t.Errorf("missing %+v", told.Missing)
	}
}
