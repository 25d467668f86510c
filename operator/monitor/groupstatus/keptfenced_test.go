// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestWhatIsSaidOfSitesThatAreKeptFencedI29: who they are, what it means and how it ends, in the condition and for each site.
func TestWhatIsSaidOfSitesThatAreKeptFencedI29(t *testing.T) {
	kept := func(name string, state v1alpha1.SiteState) failover.View {
		return failover.View{Name: name, State: state, KeptFenced: "is kept"}
	}
	for name, tc := range map[string]struct {
		views  []failover.View
		status string
		reason v1alpha1.Reason
		want   string
	}{
		"nobody":            {[]failover.View{{Name: "west"}}, "False", v1alpha1.ReasonNoneKeptFenced, ""},
		"two":               {[]failover.View{{Name: "west"}, kept("east", v1alpha1.SiteReplica), kept("south", v1alpha1.SiteFenced)}, "True", v1alpha1.ReasonKeptFenced, "east is kept; south is kept"},
		"one that is open":  {[]failover.View{kept("west", v1alpha1.SitePrimary)}, "True", v1alpha1.ReasonActiveStaysOpen, "west is kept"},
		"one that has left": {[]failover.View{{Name: "west", KeptFenced: "is kept", Gone: true}}, "False", v1alpha1.ReasonNoneKeptFenced, ""},
	} {
		found := false
		for _, c := range Conditions(failover.Decision{Views: tc.views}, "", time.Now()) {
			if c.Type == v1alpha1.ConditionSitesKeptFenced {
				found = true
				if string(c.Status) != tc.status || c.Reason != tc.reason || c.Message != tc.want {
					t.Errorf("I29: %s: %+v", name, c)
				}
			}
		}
		if !found {
			t.Errorf("%s: there is no condition", name)
		}
	}
	s := Of(&v1alpha1.MysqlFailoverGroup{}, failover.Durable{}, []failover.View{kept("east", v1alpha1.SiteReplica), {Name: "west"}})
	if !s.Sites[0].KeptFenced || s.Sites[1].KeptFenced {
		t.Errorf("I29: %+v", s.Sites)
	}
	other := *s.DeepCopy()
	if other.Sites[0].KeptFenced = false; Says(other, s) {
		t.Error("I29: a status that does not say it passes for one that does")
	}
}
