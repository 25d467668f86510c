// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestTransactionsOnTheWayAreNoDivergenceI10: a replica may have what the active site is about to commit for some seconds, and not for good.
// What any other server has numbered is a divergence at once.
func TestTransactionsOnTheWayAreNoDivergenceI10(t *testing.T) {
	for name, tc := range map[string]struct {
		had   string
		ahead time.Duration // before this look; 0: first seen now
		want  string
	}{
		"of the active site, first seen":      {"A:1-1002", 0, ""},
		"of the active site, for a while":     {"A:1-1002", onTheWay - time.Second, ""},
		"of the active site, for too long":    {"A:1-1002", onTheWay, "A:1001-1002"},
		"of another server":                   {"A:1-1000,B:1", 0, "B:1"},
		"of both, first seen":                 {"A:1-1002,B:1", 0, "B:1"},
		"of both, the first of them too long": {"A:1-1002,B:1", onTheWay, "A:1001-1002,B:1"},
		"nothing":                             {"A:1-1000", time.Hour, ""},
	} {
		s := factstest.AtRest()
		s.Sites[0].MySQL.ServerUUID = factstest.Uuids["A"]
		had := factstest.Set(tc.had)
		was := &facts.SiteMemory{PreviousAll: &had}
		if tc.ahead > 0 {
			was.AheadSince = s.Now.Add(-tc.ahead)
		}
		b := Remember(s, facts.Memory{Sites: map[string]*facts.SiteMemory{"b": was}}).Of("b")
		if !b.Diverged.Equal(factstest.Set(tc.want)) {
			t.Errorf("I10: %s: diverged by %s, want %s", name, factstest.Short(b.Diverged.String()), tc.want)
		}
		if since := b.AheadSince; tc.had != "A:1-1000" && tc.had != "A:1-1000,B:1" && since != s.Now.Add(-tc.ahead) || tc.had == "A:1-1000" && !since.IsZero() {
			t.Errorf("I10: %s: ahead since %s", name, since)
		}
	}
}

// TestAnAnswerThatIsLostMakesNothingYoungerI10: while the two cannot be compared, it stays known since when the site was ahead.
func TestAnAnswerThatIsLostMakesNothingYoungerI10(t *testing.T) {
	s := factstest.AtRest()
	s.Sites[0].MySQL.ServerUUID = factstest.Uuids["A"]
	factstest.Silence(&s.Sites[0])
	since := s.Now.Add(-7 * time.Second)
	b := Remember(s, facts.Memory{Sites: map[string]*facts.SiteMemory{"b": {PreviousAll: new(gtid.Set), AheadSince: since}}}).Of("b")
	if b.AheadSince != since {
		t.Errorf("I10: ahead since %s, want %s", b.AheadSince, since)
	}
}
