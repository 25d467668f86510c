// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// storedBackup leaves a backup of a group in a place that is the group's with the UID "uid".
func storedBackup(t *testing.T, place bucket.Config, groupUID string) *bucket.Manifest {
	t.Helper()
	b, err := bucket.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: "monday", UID: "uid", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	part, err := w.Part(t.Context(), terms.PartDump)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte("a dump")); err != nil {
		t.Fatal(err)
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	stored, err := w.Commit(t.Context(), bucket.Manifest{
		GroupUID: groupUID, Profile: "nightly", Method: bucket.Logical, Site: "c", Epoch: 7, ServerUUID: "3e11fa47-71ca-11e1-9e33-c80aa9429562", MySQLVersion: "9.7.4",
		GTIDExecuted: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9", StartedAt: time.Now(), FinishedAt: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// I23: an attempt whose outcome nobody heard has left its manifest. The next one takes it for its own, and touches no site; what is of another
// group, profile or method it does not.
func TestABackupThatIsThereAlready(t *testing.T) {
	for name, tc := range map[string]struct {
		by, profile, method string
		want                terms.Reason
	}{
		"its own":            {"uid", "nightly", bucket.Logical, terms.Succeeded},
		"of another group":   {"another", "nightly", bucket.Logical, terms.Reason(bucket.Exists)},
		"of another profile": {"uid", "weekly", bucket.Logical, terms.Reason(bucket.Exists)},
		"by another method":  {"uid", "nightly", bucket.Physical, terms.Reason(bucket.Exists)},
	} {
		t.Run(name, func(t *testing.T) {
			place := bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"}
			stored := storedBackup(t, place, tc.by)
			file := filepath.Join(t.TempDir(), "result")
			p := &Program{Out: &bytes.Buffer{}, Log: slog.New(slog.DiscardHandler), Config: terms.Config{
				Bucket: place, Backup: "monday", GroupUID: "uid", Profile: tc.profile, Method: tc.method, ResultFile: file,
				Source: terms.Source{Host: "nowhere.invalid", Port: 3306, User: "u", PasswordFile: "none"}, Server: terms.Server{RunDir: t.TempDir(), Dir: t.TempDir()},
			}}
			p.Run(t.Context(), "make")
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var res terms.Result
			if err := json.Unmarshal(raw, &res); err != nil {
				t.Fatal(err)
			}
			if res.Reason != tc.want || res.ManifestRead != (tc.want == terms.Succeeded) {
				t.Errorf("%+v", res)
			}
			if tc.want == terms.Succeeded && (res.StoredBytes != stored.StoredBytes() || res.GTIDExecuted == "" || res.MySQLVersion != "9.7.4") {
				t.Errorf("it says something else than the manifest: %+v", res)
			}
		})
	}
}
