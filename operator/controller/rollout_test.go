// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

func TestOrderedUpdate(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	old := w.deployments()

	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = map[string]string{"max_connections": "77"} })
	changed := func() []string {
		var out []string
		for site, hash := range w.deployments() {
			if hash != old[site] {
				out = append(out, site)
			}
		}
		slices.Sort(out)
		return out
	}
	configured := func(site string) bool {
		config := &corev1.ConfigMap{}
		w.get(config, v1alpha1.ConfigName("orders", site))
		return strings.Contains(config.Data[render.ConfigKeyMyCnf], "max_connections=77")
	}
	for _, step := range []struct {
		settle string
		want   []string
	}{
		{"", []string{"c"}}, {"c", []string{"b", "c"}}, {"b", []string{"b", "c"}}, {"the role", []string{"a", "b", "c"}},
	} {
		switch step.settle {
		case "":
		case "the role":
			w.moveRole("a", "b")
		default:
			w.settle(step.settle)
		}
		for range 3 {
			// However often it looks, it waits for the site in flight.
			w.reconcile()
		}
		if diff := cmp.Diff(step.want, changed()); diff != "" {
			t.Fatalf("after %q settled (-want +got):\n%s", step.settle, diff)
		}
		for _, site := range []string{"a", "b", "c"} {
			if configured(site) != slices.Contains(step.want, site) {
				t.Errorf("after %q settled: the option file of %s is that of another turn", step.settle, site)
			}
		}
		if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionTrue {
			t.Errorf("condition %+v", c)
		}
	}
	if n := w.said.Count(v1alpha1.ReasonSiteUpdating); n != 3 {
		t.Errorf("%d events of an update of three sites", n)
	}
}

func TestNoUpdateDuringFailover(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	g := w.group()
	g.Status.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverEmergency, To: "b"}
	w.must(w.c.Status().Update(w.ctx, g))
	w.reconcile()
	if diff := cmp.Diff(old, w.deployments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A clone that an operator before this one began is long work too, though nobody has taken it up yet.
func TestNoUpdateOfASiteThatIsBeingCloned(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	f, _ := w.facts.Sites("", "")
	cloning := f.Sites["b"]
	cloning.Cloning, cloning.Following = true, false
	w.facts.Set("b", cloning)
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	if diff := cmp.Diff(old, w.deployments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Facts of the pod that was there before say nothing about the one that is there now.
func TestSettledNeedsFactsOfThisPod(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	f, _ := w.facts.Sites("", "")
	stale := f.Sites["b"]
	stale.PodUID = "the-pod-before"
	w.facts.Set("b", stale)
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	w.reconcile()
	got := w.deployments()
	if got["c"] != old["c"] || got["a"] != old["a"] {
		t.Errorf("a second site was taken while b is not known to serve: %v, before %v", got, old)
	}
}

// age makes the reconciler believe that what is not settled has not been for a while.
func (w *world) age(by time.Duration) {
	for key, u := range w.r.unsettled {
		u.since = u.since.Add(-by)
		w.r.unsettled[key] = u
	}
}

// An update that goes wrong stops at the first site, says why, and goes on with a corrected specification.
func TestAnUpdateStopsAtASiteThatDoesNotComeBack(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.7-typo" })
	w.reconcile()
	w.settle("c")
	pod := &corev1.Pod{}
	w.get(pod, "mysql-orders-c-"+w.deployments()["c"])
	pod.Status.Conditions = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: render.ContainerMySQL, Image: "mysql:9.7-typo", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
	}}
	w.must(w.c.Status().Update(w.ctx, pod))
	w.facts.Set("c", scope.SiteFacts{PodUID: string(pod.UID)})
	w.reconcile()
	c := w.condition(v1alpha1.ConditionProgressing)
	if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "ImagePullBackOff") || w.said.Count(v1alpha1.ReasonSiteNotBack) != 0 {
		t.Errorf("at first: condition %+v", c)
	}
	w.age(lateAfter)
	for range 3 {
		w.reconcile()
	}
	c = w.condition(v1alpha1.ConditionProgressing)
	if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonSiteNotBack || !strings.Contains(c.Message, "ImagePullBackOff") {
		t.Errorf("condition %+v", c)
	}
	if n := w.said.Count(v1alpha1.ReasonSiteNotBack); n != 1 {
		t.Errorf("said %d times", n)
	}
	if got := w.deployments(); got["a"] != old["a"] || got["b"] != old["b"] {
		t.Errorf("got %v, before %v", got, old)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	if got := w.deployments(); got["a"] != old["a"] || got["b"] != old["b"] {
		t.Errorf("corrected: got %v, before %v", got, old)
	}
	w.settle("c")
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); w.deployments()["b"] == old["b"] || c.Reason != v1alpha1.ReasonUpdating {
		t.Errorf("the update does not go on: condition %+v", c)
	}
	// Should it happen again, it is told again.
	if w.r.base.Changed(scopetest.Key, "SiteNotBack/c", "") {
		t.Error("the site is back, and still said not to be")
	}
}

func TestPauseUntil(t *testing.T) {
	for name, tc := range map[string]struct {
		value  string
		paused bool
		said   int
	}{
		"later":    {time.Now().Add(time.Minute).Format(time.RFC3339), true, 0},
		"over":     {time.Now().Add(-time.Minute).Format(time.RFC3339), false, 0},
		"no time":  {"tomorrow", false, 1},
		"no value": {"", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			w.facts.Open("a")
			w.reconcile()
			w.settle("a", "b", "c")
			w.reconcile()
			old := w.deployments()
			w.annotate(v1alpha1.AnnotationPauseUntil, tc.value)
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
			w.reconcile()
			if again := w.reconcile(); tc.paused && again > time.Minute+time.Second {
				t.Errorf("looked at again after %v", again)
			}
			if paused := w.deployments()["c"] == old["c"]; paused != tc.paused || w.said.Count(v1alpha1.ReasonPauseUnreadable) != tc.said {
				t.Errorf("paused %v, said %v", paused, w.said.List)
			}
		})
	}
}

func TestBrokenSiteIsRepairedFirst(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.facts.Set("c", scope.SiteFacts{})
	w.isUnavailable("c")
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	got := w.deployments()
	if got["c"] == old["c"] || got["b"] != old["b"] || got["a"] != old["a"] {
		t.Errorf("got %v, before %v", got, old)
	}
}

// After a restart of the operator nothing is known yet, and a site that is not ready may be the one that serves.
func TestNothingIsRepairedBeforeAnythingIsKnown(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.isUnavailable("a")
	old := w.deployments()
	w.facts.G = scope.GroupFacts{}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	if diff := cmp.Diff(old, w.deployments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A group whose update is stopped, by a person for a week perhaps, is not looked at every two seconds.
func TestAStoppedUpdateIsLookedAtSeldom(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.annotate(v1alpha1.AnnotationPauseUntil, time.Now().Add(time.Hour).Format(time.RFC3339))
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	if again := w.reconcile(); again < scope.WhenWaiting {
		t.Errorf("looked at again after %v", again)
	}
}

// A diverged site waits for a person, perhaps for a week. The update of the others does not wait for that person too.
func TestADivergedSiteDoesNotHoldUpAnUpdate(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	diverge := func() { w.fact("b", func(f *scope.SiteFacts) { f.Diverged, f.Following = true, false }) }
	diverge()
	w.reconcile()
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = map[string]string{"max_connections": "77"} })
	w.reconcile()
	if now := w.deployments(); now["b"] == old["b"] || now["c"] != old["c"] {
		t.Fatal("the site that does not do its part anyway does not go first")
	}
	w.fact("b", func(f *scope.SiteFacts) { f.MysqlUp = false })
	w.reconcile()
	if now := w.deployments(); now["c"] != old["c"] {
		t.Fatal("b is not back, and the next one goes")
	}
	w.settle("b")
	diverge()
	w.reconcile()
	if now := w.deployments(); now["c"] == old["c"] {
		t.Errorf("the update waits for a person: %+v", w.condition(v1alpha1.ConditionProgressing))
	}
	w.settle("c")
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonNoCandidate || w.deployments()["a"] != old["a"] {
		t.Errorf("b, which has diverged, is all that could take the role: %+v", c)
	}
}

// A site that cannot be cloned before the active site is updated too must not hold the update up.
func TestASiteOfAnotherSeriesDoesNotHoldUpAnUpdate(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	old := w.deployments()
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		for i := range s.Sites {
			s.Sites[i].Provisioned = s.Sites[i].Name != "c"
		}
	})
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.fact("a", func(f *scope.SiteFacts) { f.Version = "9.7.4" })
	w.reconcile()
	w.settle("c")
	for _, step := range []struct {
		version string
		updated bool
	}{{"", false}, {"9.7.9", false}, {"9.8.0", true}} {
		w.fact("c", func(f *scope.SiteFacts) { f.Version, f.Following = step.version, false })
		w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
			for i := range s.Sites {
				s.Sites[i].Provisioned = s.Sites[i].Name != "c"
			}
		})
		w.reconcile()
		if got := w.deployments()["b"] != old["b"]; got != step.updated {
			t.Errorf("with %q on c and 9.7.4 on a: b is updated: %t, condition %+v", step.version, got, w.condition(v1alpha1.ConditionProgressing))
		}
	}
}

func TestSeries(t *testing.T) {
	for version, want := range map[string]string{"9.7.4": "9.7", "9.7.4-commercial": "9.7", "9.10.0": "9.10", "9": "9", "": ""} {
		if got := series(version); got != want {
			t.Errorf("%q is of series %q", version, got)
		}
	}
}

// An encrypted site without its data gets a new pod, whoever else is missing; in a pause only if a person ordered its clone.
func TestWhichSiteIsClonedOnlyInANewPod(t *testing.T) {
	paused := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for name, tc := range map[string]struct {
		site, pause, order                     string
		plain, provisioned, first, other, want bool
	}{
		"to be cloned":                {site: "b", want: true},
		"has its data":                {site: "b", provisioned: true},
		"not encrypted":               {site: "b", plain: true},
		"active":                      {site: "a"},
		"no site is active yet":       {site: "b", first: true},
		"another image is wished for": {site: "b", other: true},
		"paused":                      {site: "b", pause: paused},
		"paused, a person ordered it": {site: "b", pause: paused, order: "b:confirm", want: true},
		"paused, the policy says so":  {site: "b", pause: paused, order: "onDivergence"},
	} {
		w := encryptedWorld(t)
		g := w.group()
		g.Spec.EncryptionAtRest.Enabled = !tc.plain
		if !tc.first {
			g.Status.ActiveSite = "a"
		}
		if tc.pause != "" {
			g.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: tc.pause}
		}
		d := &appsv1.Deployment{}
		s := &scope.Scope{
			Key: scopetest.Key, Group: g, Now: time.Now(), Deployments: map[string]*appsv1.Deployment{tc.site: d},
			Provisioned: map[string]bool{}, Clones: map[string]*v1alpha1.CloneProgress{tc.site: {Order: tc.order}},
			Pods: map[string]*corev1.Pod{"a": {Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: render.ContainerMySQL, Image: "mysql:1"}}}}},
		}
		g.Status.Sites = []v1alpha1.SiteStatus{{Name: "a"}, {Name: tc.site, Provisioned: tc.provisioned}}
		if g.Spec.Image = "mysql:1"; tc.other {
			g.Spec.Image = "mysql:2"
		}
		if got := w.r.rolloutSite(s, v1alpha1.Site{Name: tc.site}, d); got.Uncloned != tc.want {
			t.Errorf("%s: %t", name, got.Uncloned)
		}
	}
}
