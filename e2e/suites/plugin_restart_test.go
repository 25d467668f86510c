// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// podsBySite are the pods of MySQL as they are now.
func podsBySite(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) map[string]types.UID {
	t.Helper()
	all := map[string]types.UID{}
	for _, site := range group.Spec.Sites {
		pod, err := g.Pod(t.Context(), site.Name)
		if err != nil {
			t.Fatal(err)
		}
		all[site.Name] = pod.UID
	}
	return all
}

// A restart of one site gives that site another pod, and nothing else changes. The active site is refused, and a dry run restarts nothing.
// That of all sites is an ordered update without another specification, as the tests of updates play it.
func TestPluginRestartsOneSite(t *testing.T) {
	g, group := whole(t)
	active, site := group.Status.ActiveSite, "south" // dr-only: the candidate stays, so a failover could happen all the time
	before := podsBySite(t, g, group)

	plugin(t, "restart", name, active, "--yes").want(t, 5, nil).says(t, active+" is the active site", "kubectl mfg failover "+name, "kubectl mfg restart "+name)
	plugin(t, "restart", name, "nowhere", "--yes").want(t, 5, nil).says(t, "no site", "its sites are")
	plugin(t, "restart", name, site, "--dry-run=server").want(t, 0, nil).says(t, "the API server would take it")
	for was, uid := range podsBySite(t, g, group) {
		if before[was] != uid {
			t.Fatalf("%s has another pod: a refusal or a dry run restarted it", was)
		}
	}

	a := plugin(t, "restart", name, site, "--yes").want(t, 0, nil)
	a.says(t, "still to be replaced: "+site, "done: "+site+" has a new pod")
	for was, uid := range podsBySite(t, g, group) {
		if (before[was] != uid) != (was == site) {
			t.Errorf("%s has another pod: %t", was, before[was] != uid)
		}
	}
	after, err := g.AwaitReady(t.Context(), comeBack)
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.ActiveSite != active || after.Status.Epoch != group.Status.Epoch {
		t.Errorf("%s is active under epoch %d; it was %s under %d", after.Status.ActiveSite, after.Status.Epoch, active, group.Status.Epoch)
	}
	pod, err := g.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	if at := pod.Annotations[v1alpha1.AnnotationRestartedAt]; at == "" || at != after.Annotations[v1alpha1.RestartedAtSite(site)] {
		t.Errorf("the pod was made for the restart of %q, the group says %q", at, after.Annotations[v1alpha1.RestartedAtSite(site)])
	}
}
