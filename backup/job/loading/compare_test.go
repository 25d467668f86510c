// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

func TestCompare(t *testing.T) {
	have := []terms.TableRows{{Schema: "a", Table: "x", Rows: 1}, {Schema: "a", Table: "y", Rows: 2}}
	for name, want := range map[string][]terms.TableRows{
		"rows": {{Schema: "a", Table: "x", Rows: 1}, {Schema: "a", Table: "y", Rows: 3}}, "missing": {{Schema: "a", Table: "x", Rows: 1}, {Schema: "a", Table: "y", Rows: 2}, {Schema: "a", Table: "z", Rows: 0}}, "more": {{Schema: "a", Table: "x", Rows: 1}},
	} {
		if err := compare(want, have); terms.ReasonOf(err) != terms.Differs {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := compare(have, have); err != nil {
		t.Error(err)
	}
}
