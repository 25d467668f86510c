// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// volume is that of a site which is to be given a backup, and the storage beside it.
func volume(t *testing.T) *Loader {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"volume", "bucket"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return &Loader{Log: slog.New(slog.DiscardHandler), Config: terms.Config{
		Bucket: bucket.Config{Folder: filepath.Join(dir, "bucket"), Namespace: "shop", Group: "orders"}, GroupUID: "uid",
		Server: terms.Server{Dir: filepath.Join(dir, "volume", "data"+restoredSuffix), RunDir: dir},
	}}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// store puts a backup into the storage.
func store(t *testing.T, p *Loader, name string, at time.Time) {
	t.Helper()
	b := opened(t, p)
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: name, UID: "of-the-group", Now: at})
	if err != nil {
		t.Fatal(err)
	}
	part, err := w.Part(t.Context(), terms.PartFacts)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	m := bucket.Manifest{Method: bucket.Logical, Site: "a", MySQLVersion: "9.7.4", StartedAt: at.Add(-time.Minute), FinishedAt: at}
	if _, err := w.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, p *Loader) *bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.Context(), p.Config.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// I25: the newest is chosen once, and durably so before any of it is loaded: each try loads the same one, whatever comes after it.
func TestTheNewestIsChosenOnceI25(t *testing.T) {
	p := volume(t)
	p.Config.StorageDigest = "sha256:here"
	if _, err := p.choose(t.Context(), opened(t, p)); terms.ReasonOf(err) != terms.Reason(bucket.NotFound) {
		t.Errorf("there is none: %v", err)
	}
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	store(t, p, "monday", at)
	store(t, p, "tuesday", at.Add(24*time.Hour))
	store(t, p, "an-older-one", at.Add(-time.Hour))
	if _, err := p.choose(t.Context(), opened(t, p)); err != nil || p.Config.Backup != "tuesday" {
		t.Fatalf("chosen %q: %v", p.Config.Backup, err)
	}
	store(t, p, "wednesday", at.Add(48*time.Hour))
	again := *p
	again.Config.Backup = ""
	if _, err := again.choose(t.Context(), opened(t, p)); err != nil || again.Config.Backup != "tuesday" {
		t.Errorf("the next try chose %q: %v", again.Config.Backup, err)
	}
	if r, err := p.noted(); err != nil || r.StorageDigest != "sha256:here" {
		t.Errorf("the place is not noted: %+v, %v", r, err)
	}
	named := *p
	named.Config.Backup = "monday"
	if _, err := named.choose(t.Context(), opened(t, p)); err != nil || named.Config.Backup != "monday" {
		t.Errorf("chosen %q instead of the one that was named: %v", named.Config.Backup, err)
	}
	// The choice of another group, or for another place, is none.
	for name, change := range map[string]func(*terms.Config){
		"another group":  func(c *terms.Config) { c.GroupUID = "another" },
		"another place":  func(c *terms.Config) { c.Bucket.Folder += "/" },
		"another server": func(c *terms.Config) { c.StorageDigest = "sha256:there" },
	} {
		if err := p.note(record{GroupUID: "uid", Location: "elsewhere", Backup: "sunday"}); err != nil {
			t.Fatal(err)
		}
		if name != "another place" {
			if err := p.note(record{GroupUID: "uid", Location: p.Config.Bucket.Location(), StorageDigest: "sha256:here", Backup: "sunday"}); err != nil {
				t.Fatal(err)
			}
		}
		other := *p
		other.Config.Backup = ""
		change(&other.Config)
		if _, err := other.choose(t.Context(), opened(t, p)); err != nil || other.Config.Backup != "wednesday" {
			t.Errorf("%s: chosen %q: %v", name, other.Config.Backup, err)
		}
	}
	scratch := *p
	scratch.Config.Server.Dir, scratch.Config.Backup = filepath.Join(t.TempDir(), "data"), ""
	if err := check(scratch.Config); terms.ReasonOf(err) != terms.BadConfig {
		t.Errorf("a scratch server is not told which: %v", err)
	}
}

// What cannot be read may be the newest.
func TestNewestIsNotGuessed(t *testing.T) {
	p := volume(t)
	store(t, p, "monday", time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	put(t, filepath.Join(p.Config.Bucket.Folder, "shop", "orders", "backups", "tuesday", "manifest.json"), "{")
	_, err := p.choose(t.Context(), opened(t, p))
	if terms.ReasonOf(err) != terms.Reason(bucket.Damaged) || !strings.Contains(err.Error(), "tuesday") || !strings.Contains(err.Error(), "is monday") {
		t.Errorf("%q: %v", p.Config.Backup, err)
	}
	if _, err := os.Stat(p.Config.Server.Dir + recordSuffix); err == nil {
		t.Error("something was chosen")
	}
}

// A clock that was ahead must not have an old backup pass for the newest: what was written since would be lost without a word.
func TestTheFutureIsNotTheNewest(t *testing.T) {
	p := volume(t)
	store(t, p, "monday", time.Now().Add(-time.Hour))
	store(t, p, "ahead", time.Now().Add(30*24*time.Hour))
	_, err := p.choose(t.Context(), opened(t, p))
	if terms.ReasonOf(err) != terms.BadConfig || !strings.Contains(err.Error(), "ahead") || !strings.Contains(err.Error(), "is monday") {
		t.Errorf("%q: %v", p.Config.Backup, err)
	}
	named := volume(t)
	store(t, named, "ahead", time.Now().Add(30*24*time.Hour))
	named.Config.Backup = "ahead"
	if _, err := named.choose(t.Context(), opened(t, named)); err != nil {
		t.Errorf("one that is named: %v", err)
	}
}

// I25: data that this restore has not brought never passes for restored.
func TestOnlyWhatThisRestoreBroughtCountsI25(t *testing.T) {
	ours := record{GroupUID: "uid", StorageDigest: "sha256:here", Backup: "monday", Result: &terms.Result{Method: bucket.Logical, Rows: 7, Seconds: 30}}
	older := ours
	older.StorageDigest = ""
	for name, tc := range map[string]struct {
		record *record
		config func(*terms.Config)
		// site and restored have files, and partial is the mark beside the latter.
		site, restored, partial bool
		loaded                  bool
		refused                 bool
	}{
		"a new volume":                    {},
		"a choice, and nothing loaded":    {record: &ours},
		"half a load":                     {record: &ours, restored: true, partial: true},
		"loaded":                          {record: &ours, restored: true, loaded: true},
		"taken":                           {record: &ours, site: true, loaded: true},
		"taken, and named now":            {record: &ours, site: true, config: func(c *terms.Config) { c.Backup = "monday" }, loaded: true},
		"data of nobody":                  {site: true, refused: true},
		"restored by nobody":              {restored: true, refused: true},
		"of a group of this name":         {record: &record{GroupUID: "before", Backup: "monday"}, site: true, refused: true},
		"another backup":                  {record: &ours, site: true, config: func(c *terms.Config) { c.Backup = "tuesday" }, refused: true},
		"another place":                   {record: &ours, restored: true, config: func(c *terms.Config) { c.Bucket.Group = "old" }, refused: true},
		"another server or volume":        {record: &ours, restored: true, config: func(c *terms.Config) { c.StorageDigest = "sha256:there" }, refused: true},
		"of an older program":             {record: &older, restored: true, config: func(c *terms.Config) { c.StorageDigest = "sha256:there" }, loaded: true},
		"asked for by an older one":       {record: &ours, restored: true, config: func(c *terms.Config) { c.StorageDigest = "" }, loaded: true},
		"encrypted, in the same pod":      {record: &ours, restored: true, config: withKeyring(true), loaded: true},
		"encrypted, and its keyring gone": {record: &ours, restored: true, config: withKeyring(false)},
		"encrypted, and taken":            {record: &ours, site: true, config: withKeyring(false), loaded: true},
	} {
		p := volume(t)
		if tc.record != nil {
			r := *tc.record
			r.Location = p.Config.Bucket.Location()
			if err := p.note(r); err != nil {
				t.Fatal(err)
			}
		}
		p.Config.StorageDigest = "sha256:here"
		if tc.config != nil {
			tc.config(&p.Config)
		}
		dir := p.Config.Server.Dir
		if tc.site {
			put(t, filepath.Join(strings.TrimSuffix(dir, restoredSuffix), "auto.cnf"), "")
		}
		if tc.restored {
			put(t, filepath.Join(dir, "auto.cnf"), "")
		}
		if tc.partial {
			put(t, dir+mysqld.PartialSuffix, "")
		}
		before, err := p.loaded()
		if refused := terms.ReasonOf(err) == terms.TargetNotEmpty; refused != tc.refused || err != nil && !refused || (before != nil) != tc.loaded {
			t.Errorf("%s: %+v, %v", name, before, err)
		}
		if tc.loaded && (before.told().Rows != 7 || before.told().Backup != "monday") {
			t.Errorf("%s: it tells of %+v", name, before.told())
		}
		if name == "encrypted, and its keyring gone" {
			if err := (&mysqld.Server{Config: p.Config.Server}).Clear(); err != nil {
				t.Errorf("%s: it cannot be begun again: %v", name, err)
			}
		}
	}
	p := volume(t)
	put(t, p.Config.Server.Dir+recordSuffix, "{")
	if _, err := p.loaded(); terms.ReasonOf(err) != terms.TargetNotEmpty {
		t.Errorf("a record that is none: %v", err)
	}
	long := record{GroupUID: "u", Backup: "monday", Reached: strings.Repeat("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9,", 40_000)}
	if err := p.note(long); err != nil {
		t.Errorf("a set as long as the archive takes: %v", err)
	}
	if r, err := p.noted(); err != nil || r == nil || r.Reached != long.Reached {
		t.Errorf("a set as long as the archive takes is not read again: %v", err)
	}
	if long.Reached = strings.Repeat("x", recordMax); p.note(long) == nil {
		t.Error("a record that could not be read again is written")
	}
	put(t, p.Config.Server.Dir+recordSuffix, strings.Repeat(" ", recordMax+1))
	if _, err := p.loaded(); terms.ReasonOf(err) != terms.TargetNotEmpty {
		t.Errorf("a record that is too large: %v", err)
	}
}

// withKeyring is an encrypted group, whose keyring is in memory or is not.
func withKeyring(there bool) func(*terms.Config) {
	return func(c *terms.Config) {
		c.Server.KeyringFile = filepath.Join(c.Server.RunDir, "keyring")
		if there {
			_ = os.WriteFile(c.Server.KeyringFile, []byte("k"), 0o600)
		}
	}
}
