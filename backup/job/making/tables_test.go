// SPDX-License-Identifier: Apache-2.0

package making

import (
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

func TestTheDumpHasTheTablesOfTheSite(t *testing.T) {
	table := func(name string) terms.TableRows { return terms.TableRows{Schema: "s", Table: name, Rows: 1} }
	site := []siteTable{{TableRows: table("a")}, {TableRows: table("b")}, {TableRows: table("m"), merged: true}}
	for name, c := range map[string]struct {
		dumped []terms.TableRows
		odd    string
	}{
		"the same":          {[]terms.TableRows{table("b"), table("a")}, ""},
		"with a merged one": {[]terms.TableRows{table("a"), table("b"), table("m")}, ""},
		"one less":          {[]terms.TableRows{table("a")}, "s.b"},
		"one more":          {[]terms.TableRows{table("a"), table("b"), table("ghost")}, "s.ghost"},
		"one twice":         {[]terms.TableRows{table("a"), table("b"), table("a")}, "s.a"},
		"none":              {nil, "s.a"},
	} {
		if odd := oddTable(site, c.dumped); odd != c.odd {
			t.Errorf("%s: %q, want %q", name, odd, c.odd)
		}
	}
}
