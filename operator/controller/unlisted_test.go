// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

// tellsOf is true if the Deployment of a site tells its sidecar of another site.
func (w *world) tellsOf(site, other string) bool {
	w.t.Helper()
	var d appsv1.Deployment
	w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, site))
	return slices.Contains(v1alpha1.Peers(&corev1.Pod{Spec: d.Spec.Template.Spec}), render.PeerAddr(scopetest.Key.Namespace, scopetest.Key.Name, other))
}

func addD(g *v1alpha1.MysqlFailoverGroup) {
	g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: "d", Role: v1alpha1.PrimaryCandidate})
}

// TestANewSiteIsListedOnceItHasItsDataI4: no pod is replaced for a site that may never come, status says that nobody asks it, and it
// stops to say so before the first pod is made that does.
func TestANewSiteIsListedOnceItHasItsDataI4(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	before := w.deployments()

	w.change(addD)
	w.monitorStatus("a", 1) // the poll loop may have written of it first
	for range 3 {
		w.reconcile()
	}
	if !w.site("d").Unlisted {
		t.Error("I4: status does not say that nobody asks d")
	}
	for _, site := range []string{"a", "b", "c"} {
		if w.tellsOf(site, "d") || w.deployments()[site] != before[site] || w.site(site).Unlisted {
			t.Errorf("%s is replaced for a site without data, or is not listed itself", site)
		}
	}
	if !w.tellsOf("d", "a") {
		t.Error("d is not told of a")
	}
	w.settle("d")
	w.ended("d", work.Outcome{Verdict: work.VerdictAdopt, Message: "cloned", Cloned: true})
	w.reconcile()
	if w.site("d").Unlisted || !w.provisioned("d") {
		t.Errorf("d has its data: %+v", w.site("d"))
	}
	for _, site := range []string{"a", "b", "c"} {
		if w.tellsOf(site, "d") {
			t.Errorf("I4: %s is told of d before status says so", site)
		}
	}
	w.reconcile()
	if !w.tellsOf("c", "d") {
		t.Error("nobody is ever told of d")
	}
}

// TestWhoIsUnlistedI4: in doubt a site counts as one that may be asked.
func TestWhoIsUnlistedI4(t *testing.T) {
	pod := func(site string, peers ...string) corev1.Pod {
		p := corev1.Pod{}
		p.Labels = map[string]string{v1alpha1.LabelSite: site}
		always := corev1.ContainerRestartPolicyAlways
		list := ""
		for _, peer := range peers {
			list += render.PeerAddr(scopetest.Key.Namespace, scopetest.Key.Name, peer) + ","
		}
		p.Spec.InitContainers = []corev1.Container{{Name: v1alpha1.ContainerSidecar, RestartPolicy: &always, Env: []corev1.EnvVar{{Name: v1alpha1.EnvPeers, Value: list}}}}
		return p
	}
	status := func(a, b, c v1alpha1.SiteStatus) []v1alpha1.SiteStatus {
		a.Name, b.Name, c.Name = "a", "b", "c"
		return []v1alpha1.SiteStatus{a, b, c}
	}
	has, none := v1alpha1.SiteStatus{Provisioned: true, VolumeID: "v"}, v1alpha1.SiteStatus{}
	alone := []corev1.Pod{pod("a", "b"), pod("b", "a")}
	for name, tc := range map[string]struct {
		sites []v1alpha1.SiteStatus
		pods  []corev1.Pod
		want  bool
	}{
		"it is new":                          {status(has, has, none), alone, true},
		"a new group":                        {status(none, none, none), alone, false},
		"it has data":                        {status(has, has, has), alone, false},
		"it had data":                        {status(has, has, v1alpha1.SiteStatus{VolumeID: "v"}), alone, false},
		"a pod is told of it":                {status(has, has, none), []corev1.Pod{pod("a", "b"), pod("b", "a", "c")}, false},
		"an old pod is told of it":           {status(has, has, none), append([]corev1.Pod{pod("a", "b", "c")}, alone...), false},
		"the list of a site is not known":    {status(has, has, none), alone[:1], false},
		"it was so, and a pod is not seen":   {status(has, has, v1alpha1.SiteStatus{Unlisted: true}), alone[:1], true},
		"status of before, and there is one": {status(has, has, v1alpha1.SiteStatus{Unlisted: true}), []corev1.Pod{pod("a", "b", "c"), pod("b", "a")}, false},
	} {
		g := scopetest.Group()
		g.Status.Sites = tc.sites
		got := unlisted(g, tc.pods)
		if got["c"] != tc.want || got["a"] || got["b"] {
			t.Errorf("I4: %s: unlisted are %v", name, got)
		}
	}
}
