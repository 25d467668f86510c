// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// A verification's own server takes every row and finds every table of the backup.
func TestAServerOfOursIsMadeAsTheBackups(t *testing.T) {
	for want, facts := range map[string]terms.Facts{
		"--lower-case-table-names=0 --innodb-page-size=65536": {PageSize: 64 << 10},
		"--lower-case-table-names=1 --innodb-page-size=16384": {PageSize: 16 << 10, CaseNames: 1},
		"--lower-case-table-names=0":                          {},
	} {
		if got := strings.Join(ownSettings(facts), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A data directory keeps for ever what it was made with: a backup that was made with something else is refused before anything is loaded.
func TestSettingsOfAnotherServerAreRefused(t *testing.T) {
	usual := terms.Facts{PageSize: 16 << 10}
	folded := terms.Facts{PageSize: 16 << 10, CaseNames: 1}
	large := terms.Facts{PageSize: 32 << 10}
	for name, tc := range map[string]struct {
		conf   string
		method string
		facts  terms.Facts
		line   string // that the refusal names; empty if it is taken
	}{
		"both as usual":           {"[mysqld]\nport=3306\n", bucket.Logical, usual, ""},
		"names folded there":      {"[mysqld]\nport=3306\n", bucket.Logical, folded, `lower_case_table_names: "1"`},
		"names folded there, too": {"[mysqld]\nport=3306\n", bucket.Physical, folded, `lower_case_table_names: "1"`},
		"names folded here":       {"[mysqld]\nlower_case_table_names=1\n", bucket.Logical, usual, `lower_case_table_names: "0"`},
		"folded in both":          {"[mysqld]\nlower-case-table-names = 1 # as before\n", bucket.Logical, folded, ""},
		"the last line counts":    {"[mysqld]\nlower_case_table_names=1\nloose_lower_case_table_names=0\n", bucket.Logical, folded, `lower_case_table_names: "1"`},
		"set for the client":      {"[mysqld]\n[client]\nlower_case_table_names=1\n", bucket.Logical, folded, `lower_case_table_names: "1"`},
		"commented out":           {"[mysqld]\n#lower_case_table_names=1\n", bucket.Logical, folded, `lower_case_table_names: "1"`},
		"other pages":             {"[mysqld]\n", bucket.Physical, large, `innodb_page_size: "32768"`},
		"the same pages":          {"[mysqld]\ninnodb_page_size=32K\n", bucket.Physical, large, ""},
		"the same pages in bytes": {"[mysqld]\ninnodb_page_size='32768'\n", bucket.Physical, large, ""},
		"a dump has no pages":     {"[mysqld]\n", bucket.Logical, large, ""},
		"an old backup":           {"[mysqld]\nlower_case_table_names=1\n", bucket.Logical, terms.Facts{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "my.cnf")
			put(t, path, tc.conf)
			err := checkSettings(path, tc.method, tc.facts)
			if tc.line == "" && err != nil || tc.line != "" && (terms.ReasonOf(err) != terms.SettingsMismatch || !strings.Contains(err.Error(), tc.line)) {
				t.Errorf("%v, want %q", err, tc.line)
			}
			if err := checkSettings("", tc.method, tc.facts); err != nil {
				t.Errorf("without a file the backup's own settings count: %v", err)
			}
		})
	}
	for name, conf := range map[string]string{"no number": "[mysqld]\ninnodb_page_size=big\n", "nothing": "[mysqld]\nlower_case_table_names\n"} {
		path := filepath.Join(t.TempDir(), "my.cnf")
		put(t, path, conf)
		if err := checkSettings(path, bucket.Logical, usual); terms.ReasonOf(err) != terms.BadConfig {
			t.Errorf("%s: %v", name, err)
		}
	}
}
