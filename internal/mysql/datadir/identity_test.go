// SPDX-License-Identifier: Apache-2.0

package datadir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql/datadir"
)

const oldIdentity = "[auto]\nserver-uuid=3e11fa47-71ca-11e1-9e33-c80aa9429562\n"

// I10: numbers of transactions that were lost are never given again.
func TestI10AClonedServerIsAnotherServer(t *testing.T) {
	for name, c := range map[string]struct {
		files   []string
		renewed bool
		reason  string
	}{
		"cloned":         {[]string{"#status_fix", "#replace_files", "#view_status"}, true, "the next start takes the data of another server"},
		"never cloned":   {nil, false, "its numbers go on"},
		"under way":      {[]string{"#status_error", "#replace_files", "#view_status"}, false, "mysqld ended in the middle: what there is, is its own"},
		"cloned earlier": {[]string{"#status_recovery", "#view_status"}, false, "it may have written since: a site with another name would seem to have other data"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "#clone"), 0o750); err != nil {
			t.Fatal(err)
		}
		for _, file := range c.files {
			place(t, filepath.Join(dir, "#clone", file), "")
		}
		place(t, filepath.Join(dir, "auto.cnf"), oldIdentity)
		place(t, filepath.Join(dir, "auto.cnf.new"), "[auto]\nserver-uu") // an earlier try was killed
		renewed, err := datadir.RenewIdentity(dir)
		if err != nil || (renewed != "") != c.renewed {
			t.Errorf("%s: renewed %q, %v, want %v: %s", name, renewed, err, c.renewed, c.reason)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "auto.cnf"))
		if err != nil || (string(raw) == oldIdentity) == c.renewed || !strings.HasSuffix(string(raw), "\n") || len(raw) != len(oldIdentity) {
			t.Errorf("%s: auto.cnf holds %q, %v: %s", name, raw, err, c.reason)
		}
	}
}

func TestI10NoIdentityNoStart(t *testing.T) {
	dir := t.TempDir()
	place(t, filepath.Join(dir, "auto.cnf"), oldIdentity)
	if err := os.Mkdir(filepath.Join(dir, "#clone"), 0o750); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(dir, "#clone", "#status_fix"), "")
	// Nothing can be written under that name, as on a full disk.
	if err := os.Mkdir(filepath.Join(dir, "auto.cnf.new"), 0o750); err != nil {
		t.Fatal(err)
	}
	if renewed, err := datadir.RenewIdentity(dir); err == nil {
		t.Errorf("it was not written, and is said to be %q", renewed)
	}
	if raw, _ := os.ReadFile(filepath.Join(dir, "auto.cnf")); string(raw) != oldIdentity {
		t.Errorf("half done: %q", raw)
	}
}

func place(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
