// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Rows that no clone brings are told of the site that has them, and of the replica that lacks them.
func TestRowsOutsideInnoDBAreTold(t *testing.T) {
	found := func(tables, rows int) *wire.EngineReport { return &wire.EngineReport{Tables: tables, WithRows: rows} }
	for name, tc := range map[string]struct {
		reason   string
		a, b     *wire.EngineReport
		forA     string
		forB     string
		bAnswers bool
	}{
		"nobody looked":      {"sidecars of an older version", nil, nil, "", "", true},
		"none":               {"all is in InnoDB", found(0, 0), found(0, 0), "", "", true},
		"empty ones":         {"nothing to lose", found(2, 0), found(2, 0), "", "", true},
		"on both":            {"they were replicated", found(2, 2), found(2, 2), "RowsNotCloned", "", true},
		"not on the replica": {"it was cloned", found(2, 2), found(2, 1), "RowsNotCloned", "RowsMissing", true},
		"replica not asked":  {"it is not known", found(2, 2), nil, "RowsNotCloned", "", true},
		"not there yet":      {"the table itself has not been replicated", found(2, 2), found(0, 0), "RowsNotCloned", "", true},
		"replica silent":     {"what it said is of another poll", found(2, 2), found(2, 1), "RowsNotCloned", "", false},
	} {
		s := healthyThree()
		s.Sites[0].Sidecar.Report.Engines, s.Sites[1].Sidecar.Report.Engines = tc.a, tc.b
		s.Sites[1].Sidecar.Answered = tc.bAnswers
		got := map[string]View{}
		for _, v := range Decide(s, Memory{}).Views {
			got[v.Name] = v
		}
		if got["a"].Reason != tc.forA || got["b"].Reason != tc.forB {
			t.Errorf("%s, %s: a %q, b %q, want %q, %q", name, tc.reason, got["a"].Reason, got["b"].Reason, tc.forA, tc.forB)
		}
		if tc.forA != "" && !strings.Contains(got["a"].Message, "ENGINE=InnoDB") || !got["a"].Healthy || !got["b"].Healthy {
			t.Errorf("%s: %+v, %+v", name, got["a"], got["b"])
		}
	}
}
