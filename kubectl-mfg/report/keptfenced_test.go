// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestWhatIsNotedOfASiteThatIsKeptFencedI29: the operator's own words; and before it has said so, that it has not.
func TestWhatIsNotedOfASiteThatIsKeptFencedI29(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, says bool
		want        string
	}{
		"nobody asked":          {false, false, ""},
		"asked for":             {true, false, "west is to be kept fenced, and no operator says yet that it is"},
		"the operator says so":  {true, true, "the message"},
		"about to be taken off": {false, true, "the message"},
	} {
		cr := &v1alpha1.MysqlFailoverGroup{}
		cr.Spec.Sites = []v1alpha1.Site{{Name: "east"}, {Name: "west"}}
		cr.Status.Sites = []v1alpha1.SiteStatus{{Name: "west", KeptFenced: tc.says}}
		if tc.asked {
			cr.Annotations = map[string]string{v1alpha1.KeepFencedSite("west"): ""}
		}
		if tc.says {
			cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSitesKeptFenced, Status: metav1.ConditionTrue, Message: "the message"}}
		}
		r, notes := Build(cr, LiveView{}), []string(nil)
		for _, n := range r.Notes {
			notes = append(notes, n.Text)
		}
		if got := strings.Join(notes, "|"); got != tc.want {
			t.Errorf("I29: %s: %q", name, got)
		}
		if r.Sites[1].KeptFenced != tc.says {
			t.Errorf("I29: %s: west is kept fenced: %t", name, r.Sites[1].KeptFenced)
		}
	}
}

// TestARoleThatStaysIsNoted: the person who drains a node sees only that the eviction is refused, and looks at the group.
func TestARoleThatStaysIsNoted(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]int{metav1.ConditionTrue: 1, metav1.ConditionFalse: 0} {
		cr := &v1alpha1.MysqlFailoverGroup{}
		cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPlannedBlocked, Status: status, Reason: string(v1alpha1.ReasonLargeChange), Message: "why, and what to do"}}
		r := Build(cr, LiveView{})
		if len(r.Notes) != want || want > 0 && r.Notes[0].Text != "why, and what to do" {
			t.Errorf("%s: %+v", status, r.Notes)
		}
	}
}
