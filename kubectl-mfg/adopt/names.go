// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// clearTables finds the tables of unencrypted files.
type clearTables struct {
	// byFile and bySystem are tables by the names of their tablespaces: schema/name, the latter as in file names.
	byFile, bySystem map[string]*PlaintextItem
	order            []*PlaintextItem
	clear            map[*PlaintextItem]bool
}

// enginesOnDisk are the engines whose tables are files that MySQL cannot encrypt.
var enginesOnDisk = []string{"MyISAM", "CSV", "ARCHIVE", "MRG_MYISAM"}

func newTables(rows []PlainRow) *clearTables {
	t := &clearTables{byFile: map[string]*PlaintextItem{}, bySystem: map[string]*PlaintextItem{}, clear: map[*PlaintextItem]bool{}}
	for _, row := range rows {
		if row.Kind != "table" {
			continue
		}
		alter := "ALTER TABLE " + quoted(row.Schema) + "." + quoted(row.Name)
		item := &PlaintextItem{Kind: plainTable, Schema: row.Schema, Name: row.Name, Statement: alter + " ENCRYPTION='Y'"}
		t.order = append(t.order, item)
		switch {
		case slices.Contains(enginesOnDisk, row.Engine):
			item.Statement, item.Bytes, t.clear[item] = alter+" ENGINE=InnoDB ENCRYPTION='Y'", row.Bytes, true
			item.LookFirst = row.Engine + " cannot be encrypted, and another engine may behave in another way"
		case row.Engine == "InnoDB":
			t.byFile[row.Schema+"/"+row.Name] = item
			if schema, name := inFileName(row.Schema), inFileName(row.Name); schema != "" && name != "" {
				t.bySystem[schema+"/"+name] = item
			}
		}
	}
	return t
}

// searchIndex are the files of a full-text index; they are rebuilt with their table.
var searchIndex = regexp.MustCompile(`/fts_[0-9a-f]{16}_`)

// take notes an unencrypted file; it returns false if the file belongs to no table.
func (t *clearTables) take(row PlainRow) bool {
	if row.Kind == "system" {
		item := t.bySystem[row.Name]
		if item != nil {
			// The system tablespace itself cannot be encrypted: the table must leave it.
			item.Statement = strings.TrimSuffix(item.Statement, " ENCRYPTION='Y'") + " TABLESPACE=innodb_file_per_table ENCRYPTION='Y'"
			t.clear[item] = true
		}
		return item != nil
	}
	item := t.byFile[row.Name]
	// Each partition of a partitioned table has a file: schema/table#p#partition#sp#subpartition.
	for at := 0; item == nil; {
		next := strings.Index(row.Name[at:], "#p#")
		if next < 0 {
			break
		}
		item, at = t.byFile[row.Name[:at+next]], at+next+1
	}
	if item == nil {
		return searchIndex.MatchString(row.Name)
	}
	item.Bytes += row.Bytes
	t.clear[item] = true
	return true
}

// items returns the unencrypted tables, in their order.
func (t *clearTables) items() []PlaintextItem {
	var out []PlaintextItem
	for _, item := range t.order {
		if t.clear[item] {
			out = append(out, *item)
		}
	}
	return out
}

// quoted returns a name as SQL quotes it.
func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// inFileName returns a name as MySQL writes it in file names; empty if it holds letters beyond ASCII, which have codes of their own.
func inFileName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r > 0x7f:
			return ""
		case r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "@%04x", r)
		}
	}
	return b.String()
}
