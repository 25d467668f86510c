// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestProblemsByCause: what is lost comes first, what follows from it last, and it says so.
func TestProblemsByCause(t *testing.T) {
	of := func(words string) (out []Problem) {
		for _, w := range strings.Fields(words) {
			site, reason, _ := strings.Cut(w, ":")
			out = append(out, Problem{Site: site, Reason: v1alpha1.Reason(reason)})
		}
		return out
	}
	for name, tc := range map[string]struct {
		active, moving string
		in, want       string
	}{
		"TheDeadSiteFirst":      {"paris", "", "madrid:SiteDetached paris:SiteUnreachable", "paris:SiteUnreachable madrid:SiteDetached*"},
		"TheActiveSiteFirst":    {"paris", "", "madrid:SiteUnreachable paris:SiteUnreachable", "paris:SiteUnreachable madrid:SiteUnreachable"},
		"WhileTheRoleMoves":     {"frankfurt", "paris", "madrid:SiteFenced paris:SiteUnreachable rome:SiteFenced", "paris:SiteUnreachable madrid:SiteFenced* rome:SiteFenced*"},
		"APlannedMove":          {"frankfurt", "paris", "madrid:SiteDetached paris:SiteFenced", "paris:SiteFenced madrid:SiteDetached*"},
		"NobodyIsLost":          {"paris", "", "madrid:SiteDetached rome:SiteFenced", "madrid:SiteDetached rome:SiteFenced"},
		"AWriterBeforeAll":      {"paris", "", "madrid:SiteUnreachable rome:ForeignWriter", "rome:ForeignWriter madrid:SiteUnreachable"},
		"DivergedBeforePending": {"paris", "", "madrid:SitePending rome:SiteDiverged", "rome:SiteDiverged madrid:SitePending"},
	} {
		r := MysqlFailoverGroupReport{ActiveSite: tc.active}
		if tc.moving != "" {
			r.Transition = &Transition{From: tc.moving, To: tc.active}
		}
		var got []string
		for _, p := range r.byCause(of(tc.in)) {
			words := p.Site + ":" + string(p.Reason)
			if p.Consequence {
				words += "*"
			}
			got = append(got, words)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
