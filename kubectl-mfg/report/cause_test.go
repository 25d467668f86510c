// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestASiteComesBeforeABackup: what prevents no failover stands below what is down.
func TestASiteComesBeforeABackup(t *testing.T) {
	cr, view := healthy()
	view.Status.Groups[0].Sites[1].State, view.Status.Groups[0].Sites[1].Reachable = string(v1alpha1.SiteUnreachable), false
	cr.Status.Conditions = append(cr.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBackupReady, Status: metav1.ConditionFalse,
		Reason: string(v1alpha1.ReasonNoBackupYet), Message: "none"})
	problems := Build(cr, view).Problems
	if len(problems) != 2 || problems[0].Reason != v1alpha1.ReasonSiteUnreachable || problems[1].Reason != v1alpha1.ReasonNoBackupYet {
		t.Errorf("%+v", problems)
	}
}

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
		first, others := r.byCause(of(tc.in))
		for _, p := range first {
			if p.Reason == v1alpha1.ReasonSiteUnreachable && p.Site != cmp.Or(tc.moving, tc.active) {
				t.Errorf("%s: %+v comes before what concerns the group", name, p)
			}
		}
		for _, p := range append(first, others...) {
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

// TestTheLostSiteComesBeforeWhyNothingFailsOver: the first line says what is down, the second what is in the way.
func TestTheLostSiteComesBeforeWhyNothingFailsOver(t *testing.T) {
	cr, view := healthy()
	dead := &view.Status.Groups[0].Sites[0]
	dead.State, dead.Reachable, dead.Writable = string(v1alpha1.SiteUnreachable), false, false
	cr.Status.Conditions = append(cr.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionFailoverBlocked, Status: metav1.ConditionTrue,
		Reason: string(v1alpha1.ReasonModeManual), Message: "failover.mode is Manual"})
	problems := Build(cr, view).Problems
	if len(problems) < 2 || problems[0].Reason != v1alpha1.ReasonSiteUnreachable || problems[1].Reason != v1alpha1.ReasonModeManual {
		t.Errorf("%+v", problems)
	}
}

// TestAPlannedFenceIsNoProblem: that of any other site is, and so is the loss of the old active site.
func TestAPlannedFenceIsNoProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   v1alpha1.FailoverKind
		site   string
		reason v1alpha1.Reason
		want   bool
	}{
		"Planned":     {v1alpha1.FailoverPlanned, "paris", v1alpha1.ReasonSiteFenced, true},
		"Emergency":   {v1alpha1.FailoverEmergency, "paris", v1alpha1.ReasonSiteFenced, false},
		"AnotherSite": {v1alpha1.FailoverPlanned, "madrid", v1alpha1.ReasonSiteFenced, false},
		"Lost":        {v1alpha1.FailoverPlanned, "paris", v1alpha1.ReasonSiteUnreachable, false},
	} {
		r := MysqlFailoverGroupReport{Transition: &Transition{Kind: string(tc.kind), From: "paris", To: "frankfurt"}}
		if got := r.meant(Problem{Site: tc.site, Reason: tc.reason}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
