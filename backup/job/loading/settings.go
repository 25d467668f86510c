// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// What mysqld has if nobody sets it.
const (
	usualCaseNames = 0
	usualPageSize  = 16 << 10
)

// checkSettings refuses a server whose data directory would be made with other settings than the backup's. Both are fixed once the directory is
// made. With another lower_case_table_names the load succeeds, and statements no longer find their tables; with another innodb_page_size mysqld
// does not start on the files of a Physical backup.
func checkSettings(defaultsFile string, method string, facts terms.Facts) error {
	if defaultsFile == "" || facts.PageSize == 0 {
		return nil // the backup's own settings are passed on; or the backup does not tell them
	}
	raw, err := os.ReadFile(filepath.Clean(defaultsFile))
	if err != nil {
		return terms.Fail(terms.BadConfig, fmt.Errorf("read the settings of mysqld: %w", err))
	}
	set := serverSettings(string(raw))
	names, err := settingBytes(set, "lower_case_table_names", usualCaseNames)
	if err != nil {
		return err
	}
	page, err := settingBytes(set, "innodb_page_size", usualPageSize)
	if err != nil {
		return err
	}
	return errors.Join(
		mismatch("lower_case_table_names", facts.CaseNames, names, false),
		mismatch("innodb_page_size", facts.PageSize, page, method != bucket.Physical),
	)
}

// ownSettings are arguments of a server of ours, whose directory is to be made as the backup's was: names are to be found, and rows that need
// large pages are to fit. An old backup does not tell its pages.
func ownSettings(facts terms.Facts) []string {
	args := []string{fmt.Sprintf("--lower-case-table-names=%d", facts.CaseNames)}
	if facts.PageSize > 0 {
		args = append(args, fmt.Sprintf("--innodb-page-size=%d", facts.PageSize))
	}
	return args
}

// mismatch refuses a setting that is not as in the backup, unless it does not matter.
func mismatch(name string, backup, here int64, either bool) error {
	if either || backup == here {
		return nil
	}
	return terms.Fail(terms.SettingsMismatch, fmt.Errorf("the backup was made with %s=%d, and this group has %d: put %s: \"%d\" into spec.mysqlConf of the new group",
		name, backup, here, name, backup))
}

// serverSettings are the lines of a defaults file that mysqld reads, by name; the last one counts. The operator's file includes no other.
func serverSettings(text string) map[string]string {
	set, ours := map[string]string{}, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section := strings.Trim(line, "[]")
			ours = section == "mysqld" || section == "server" || strings.HasPrefix(section, "mysqld-")
			continue
		}
		if !ours || line == "" || strings.ContainsAny(line[:1], "#;!") {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		name = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), "-", "_"))
		value, _, _ = strings.Cut(value, " #")
		set[strings.TrimPrefix(name, "loose_")] = strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return set
}

// settingBytes is a number as mysqld reads it, with K, M or G behind it, or what it has if it is not set.
func settingBytes(set map[string]string, name string, usual int64) (int64, error) {
	text, is := set[name]
	if !is {
		return usual, nil
	}
	digits, shift := text, 0
	if n := len(text); n > 0 {
		if at := strings.IndexByte("KMG", text[n-1]&^0x20); at >= 0 {
			digits, shift = text[:n-1], 10*(at+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0, terms.Fail(terms.BadConfig, fmt.Errorf("%s=%.40q in the settings of mysqld is no number", name, text))
	}
	return n << shift, nil
}
