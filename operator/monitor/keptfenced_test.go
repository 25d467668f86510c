// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// keptGroup is a group of which a person keeps those sites fenced.
func keptGroup(sites ...string) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u", ResourceVersion: "1", Annotations: map[string]string{}}}
	g.Spec.Sites = []v1alpha1.Site{{Name: "east", Role: v1alpha1.PrimaryCandidate}, {Name: "west", Role: v1alpha1.PrimaryCandidate}}
	for _, site := range sites {
		g.Annotations[v1alpha1.KeepFencedSite(site)] = "" // whatever the value is
	}
	return g
}

// TestWhichSitesAreKeptFencedI29: those that the annotations name, and no others.
func TestWhichSitesAreKeptFencedI29(t *testing.T) {
	for _, site := range sitesOf(keptGroup("west"), failover.Durable{}, nil) {
		if site.KeptFenced != (site.Name == "west") {
			t.Errorf("I29: %s is kept fenced: %t", site.Name, site.KeptFenced)
		}
	}
}

// TestNothingOpensThatIsKeptFencedSinceI29: a person's word that came since a decision was taken stops what would open that very site.
func TestNothingOpensThatIsKeptFencedSinceI29(t *testing.T) {
	for name, tc := range map[string]struct {
		decidedOn, stands *v1alpha1.MysqlFailoverGroup
		want              error
	}{
		"since":            {keptGroup(), keptGroup("west"), errOvertaken},
		"another site":     {keptGroup(), keptGroup("east"), nil},
		"known":            {keptGroup("west"), keptGroup("west"), nil},
		"taken back since": {keptGroup("west"), keptGroup(), nil},
	} {
		api := &apiServer{group: tc.stands}
		l := testLoop(t, &pushes{}, api)
		l.m.Client, l.durable, l.loaded = api, failover.Durable{}, true
		if err := l.persist(t.Context(), tc.decidedOn, failover.Decision{Status: failover.Durable{Epoch: 1, ActiveSite: "west"}}); !errors.Is(err, tc.want) {
			t.Errorf("I29: %s: %v", name, err)
		}
		if wrote := api.writes > 0; wrote != (tc.want == nil) {
			t.Errorf("I29: %s: %d writes", name, api.writes)
		}
	}
}

// TestANewLeaderKnowsWhatIsKeptFencedI29: a cache that is older than a person's word is waited for.
func TestANewLeaderKnowsWhatIsKeptFencedI29(t *testing.T) {
	for name, tc := range map[string]struct {
		cached *v1alpha1.MysqlFailoverGroup
		loads  bool
	}{
		"the cache is old": {keptGroup(), false},
		"it shows it":      {keptGroup("west"), true},
	} {
		l := testLoop(t, &pushes{}, nil)
		l.loaded, l.m.Live = false, reader{group: keptGroup("west")}
		if err := l.load(t.Context(), tc.cached); (err == nil) != tc.loads || l.loaded != tc.loads {
			t.Errorf("I29: %s: %v, loaded %t", name, err, l.loaded)
		}
	}
}
