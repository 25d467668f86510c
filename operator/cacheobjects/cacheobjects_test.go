// SPDX-License-Identifier: Apache-2.0

package cacheobjects_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/render"
)

// No Service of MySQL leads to a cache pod, whatever the loop has labelled it with, and none of a cache to a pod of MySQL or to one of another
// site or group. Nor does a budget of one count the pods of the other.
func TestSelectorsKeepCachesAndMySQLApart(t *testing.T) {
	w := newWorld(t)
	w.must()
	in := render.Input{Group: w.group}
	cachePod := func(group, site string) labels.Set {
		out := labels.Set(render.CacheSiteLabels(group, site))
		out[v1alpha1.LabelCacheRole], out[v1alpha1.LabelCacheTraffic] = string(v1alpha1.CacheMaster), v1alpha1.CacheTrafficOn
		return out
	}
	mysqlPod := labels.Set(render.SiteLabels(key.Name, "a"))
	mysqlPod[v1alpha1.LabelRole], mysqlPod[v1alpha1.LabelHealthy], mysqlPod[v1alpha1.LabelReadable] = v1alpha1.RoleReplica, v1alpha1.HealthyYes, v1alpha1.HealthyYes
	for name, tc := range map[string]struct {
		selector map[string]string
		to, not  []labels.Set
	}{
		"the cache's": {v1alpha1.CacheSelector(key.Name), []labels.Set{cachePod(key.Name, "a"), cachePod(key.Name, "b")},
			[]labels.Set{mysqlPod, cachePod("other", "a"), render.CacheSiteLabels(key.Name, "a")}},
		"a site's cache": {render.CacheSiteService(in, w.group.Spec.Sites[0]).Spec.Selector, []labels.Set{cachePod(key.Name, "a"), render.CacheSiteLabels(key.Name, "a")},
			[]labels.Set{mysqlPod, cachePod(key.Name, "b"), cachePod("other", "a")}},
		"the budget of a site's cache": {render.CacheDisruptionBudget(in, w.group.Spec.Sites[0]).Spec.Selector.MatchLabels, []labels.Set{cachePod(key.Name, "a")},
			[]labels.Set{mysqlPod, cachePod(key.Name, "b"), render.CacheSiteLabels(key.Name, "a")}},
		"MySQL's replicas": {render.ReplicasService(in).Spec.Selector, []labels.Set{mysqlPod}, []labels.Set{cachePod(key.Name, "a")}},
		"a site's MySQL":   {render.SiteService(in, w.group.Spec.Sites[0]).Spec.Selector, []labels.Set{mysqlPod}, []labels.Set{cachePod(key.Name, "a")}},
	} {
		selector := labels.SelectorFromSet(tc.selector)
		for _, pod := range tc.to {
			if !selector.Matches(pod) {
				t.Errorf("%s does not lead to %v", name, pod)
			}
		}
		for _, pod := range tc.not {
			if selector.Matches(pod) {
				t.Errorf("%s leads to %v", name, pod)
			}
		}
	}
	for _, selector := range []*metav1.LabelSelector{render.DisruptionBudget(in).Spec.Selector, render.Protection(in).Spec.Selector} {
		if s, err := metav1.LabelSelectorAsSelector(selector); err != nil || s.Matches(cachePod(key.Name, "a")) {
			t.Errorf("a budget of MySQL counts a cache pod: %v, %v", selector, err)
		}
	}
}

// The first cache pod comes once no Service of MySQL would lead to it: an earlier release wrote selectors that do not name MySQL. Caches that
// there are go on meanwhile.
func TestNoCachePodBeforeTheServicesOfMySQLNameIt(t *testing.T) {
	service := func(name string, selector map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Spec: corev1.ServiceSpec{Selector: selector}}
	}
	primary, replicas := v1alpha1.PrimaryService(key.Name), v1alpha1.ReplicasService(key.Name)
	before := map[string]string{v1alpha1.LabelGroup: key.Name, v1alpha1.LabelSite: "a"}
	now := map[string]string{v1alpha1.LabelGroup: key.Name, v1alpha1.LabelSite: "a", v1alpha1.LabelName: v1alpha1.NameMySQL}
	for name, tc := range map[string]struct {
		there []client.Object
		made  bool
	}{
		"neither is there":            {nil, true},
		"both name MySQL":             {[]client.Object{service(primary, now), service(replicas, now)}, true},
		"before the first opening":    {[]client.Object{service(primary, nil), service(replicas, now)}, true},
		"the primary one is of old":   {[]client.Object{service(primary, before), service(replicas, now)}, false},
		"that of replicas is of old":  {[]client.Object{service(primary, now), service(replicas, before)}, false},
		"it names something else yet": {[]client.Object{service(primary, map[string]string{v1alpha1.LabelName: v1alpha1.NameCache})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.there...)
			out := w.must()
			if made := len(w.sets()) == 3; made != tc.made || !made && (len(w.sets()) > 0 || out.Reason == "" || out.Again == 0) {
				t.Errorf("StatefulSets of %v, %+v", w.sets(), out)
			}
		})
	}
	w := newWorld(t)
	w.must()
	w.check(w.c.Create(t.Context(), service(primary, before)))
	w.group.Spec.Sites = append(w.group.Spec.Sites, v1alpha1.Site{Name: "d"})
	w.must()
	if !slices.Contains(w.done, "apply StatefulSet orders-cache-a") || !slices.Equal(w.sets(), []string{"a", "b", "c"}) {
		t.Errorf("StatefulSets of %v, done %v", w.sets(), w.done)
	}
}

// Without a cache, and without ever having had one, nothing is asked of the API server. Turned off, the Service of applications goes before
// anything else, and a site's StatefulSet last of what it has, because it is how the site is found again.
func TestACacheThatIsTurnedOff(t *testing.T) {
	w := newWorld(t)
	w.group.Spec.Cache = nil
	w.must()
	if len(w.done) != 0 {
		t.Errorf("without a cache it did %v", w.done)
	}
	w = newWorld(t)
	w.must()
	w.group.Spec.Sites = w.group.Spec.Sites[:2] // c left at the same time
	w.group.Spec.Cache.Enabled = false
	w.must()
	at := func(what string) int { return slices.Index(w.done, "remove "+what) }
	if at("Service orders-cache") != 0 || at("Secret orders-cache-auth") != len(w.done)-4 || at("ConfigMap orders-cache-config") < 0 {
		t.Errorf("in this order: %v", w.done)
	}
	for _, site := range []string{"a", "b", "c"} {
		set := at("StatefulSet orders-cache-" + site)
		for _, first := range []string{"Service orders-cache-" + site, "PodDisruptionBudget orders-cache-" + site, "PersistentVolumeClaim orders-cache-" + site + "-data"} {
			if i := at(first); i < 0 || i > set {
				t.Errorf("%s goes at %d, the StatefulSet at %d", first, i, set)
			}
		}
	}
	if len(w.sets()) != 0 {
		t.Errorf("left: %v", w.sets())
	}
	if reason, _, looked := w.o.Troubles.Known(key); looked {
		t.Errorf("something is kept of it: %q", reason)
	}
	// What could not be removed is found again: nothing is thought gone that is not.
	for _, stays := range []string{"Service orders-cache", "ConfigMap orders-cache-config", "Secret orders-cache-auth"} {
		w = newWorld(t)
		w.must()
		w.group.Spec.Cache.Enabled = false
		w.refuse = func(what string) error {
			if what == "remove "+stays {
				return errAway
			}
			return nil
		}
		if _, err := w.converge(); !errors.Is(err, errAway) || at(stays) != len(w.done)-1 || len(w.sets()) != 3 {
			t.Errorf("%s: %v, done %v, StatefulSets of %v", stays, err, w.done, w.sets())
		}
		w.group.Spec.Cache, w.refuse = nil, nil // taken out of the specification altogether
		w.must()
		if at(stays) < 0 || at("Secret orders-cache-auth") < 0 || len(w.sets()) != 0 {
			t.Errorf("%s: done %v, left: %v", stays, w.done, w.sets())
		}
	}
}

// The cache of a site that left goes, but for the one that is the master, or becomes it, while there is another; the last one goes with its site.
func TestCachesOfSitesThatLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		status *v1alpha1.CacheStatus
		sites  int
		left   []string
	}{
		"no master yet":       {nil, 1, []string{"a"}},
		"the master stays":    {&v1alpha1.CacheStatus{ActiveSite: "b"}, 1, []string{"a", "b"}},
		"both ends of a move": {&v1alpha1.CacheStatus{ActiveSite: "a", Transition: &v1alpha1.CacheTransition{From: "b", To: "c"}}, 1, []string{"a", "b", "c"}},
		"all are listed":      {&v1alpha1.CacheStatus{ActiveSite: "a"}, 3, []string{"a", "b", "c"}},
	} {
		w := newWorld(t)
		w.must()
		w.group.Status.Cache, w.group.Spec.Sites = tc.status, w.group.Spec.Sites[:tc.sites]
		w.must()
		if !slices.Equal(w.sets(), tc.left) {
			t.Errorf("%s: left are %v, want %v", name, w.sets(), tc.left)
		}
	}
	w := newWorld(t)
	w.group.Spec.Sites = w.group.Spec.Sites[:1]
	w.must()
	w.master("a")
	w.group.Spec.Sites = []v1alpha1.Site{{Name: "d"}}
	w.must()
	if !slices.Equal(w.sets(), []string{"d"}) {
		t.Errorf("the only one is waited for in vain: left are %v", w.sets())
	}
}

// What a person has to settle is told, stops pods from being replaced, and no password that works is taken away. What goes away by itself is an
// error, and nothing is said of it.
func TestTroubles(t *testing.T) {
	secret := func(name, password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelGroup: key.Name}},
			Data: map[string][]byte{v1alpha1.CachePassword: []byte(password)}}
	}
	tls := func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"} }
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "orders-cache", nil)
	for name, tc := range map[string]struct {
		there  []client.Object
		change func(*v1alpha1.MysqlFailoverGroup)
		refuse error
		want   v1alpha1.Reason
		fails  bool
		stuck  bool
		says   string
	}{
		"none":                        {},
		"their Secret is missing":     {change: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Auth.SecretName = "theirs" }, want: v1alpha1.ReasonSecretMissing, stuck: true, says: "theirs"},
		"their password is too short": {there: []client.Object{secret("theirs", "short")}, change: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Auth.SecretName = "theirs" }, want: v1alpha1.ReasonSecretUnusable, stuck: true, says: "8 to 128"},
		"theirs is another's": {there: []client.Object{secret("mysql-billing-app", "mP1-ABCDEFGHIJ")}, change: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Auth.SecretName = "mysql-billing-app" },
			want: v1alpha1.ReasonSecretNotMeant, stuck: true, says: "mysql-billing-app"},
		"theirs is root's": {there: []client.Object{secret("mysql-orders-root", "ABCDEFGHIJ")}, change: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Auth.SecretName = "mysql-orders-root" },
			want: v1alpha1.ReasonSecretNotMeant, stuck: true, says: "mysql-orders-root"},
		"ours is broken": {there: []client.Object{secret("orders-cache-auth", "with a blank")}, want: v1alpha1.ReasonSecretUnusable, stuck: true, says: "orders-cache-auth"},
		"a name is taken": {there: []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "orders-cache", Labels: map[string]string{v1alpha1.LabelGroup: "other"}}}},
			want: v1alpha1.ReasonForeignObject, stuck: true, says: "other"},
		"the API server refuses it":     {refuse: invalid, want: v1alpha1.ReasonObjectRefused, stuck: true},
		"the API server is away":        {refuse: errAway, fails: true},
		"no certificate":                {change: tls, want: v1alpha1.ReasonSecretMissing, says: "orders-tls"},
		"a certificate that is none":    {there: []client.Object{secret("orders-tls", "x")}, change: tls, want: v1alpha1.ReasonSecretUnusable, says: "orders-tls"},
		"no certificate that is needed": {change: func(g *v1alpha1.MysqlFailoverGroup) { tls(g); g.Spec.Cache.TLS.Enabled = new(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.there...)
			if tc.change != nil {
				tc.change(w.group)
			}
			w.refuse = func(what string) error {
				if what == "apply Service orders-cache" {
					return tc.refuse
				}
				return nil
			}
			out, err := w.converge()
			if (err != nil) != tc.fails || out.Stuck != tc.stuck {
				t.Errorf("%+v %v", out, err)
			}
			reason, message, looked := w.o.Troubles.Known(key)
			if reason != tc.want || looked == tc.fails || !strings.Contains(message, tc.says) || strings.Contains(message, "blank") {
				t.Errorf("%s %q, looked %t", reason, message, looked)
			}
		})
	}
}

// What a person settled is not told any more.
func TestATroubleThatIsSettled(t *testing.T) {
	w := newWorld(t)
	w.group.Spec.Cache.Auth.SecretName = "theirs"
	w.must()
	if w.trouble() == "" {
		t.Fatal("nothing is told")
	}
	w.check(w.c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "theirs"},
		Data: map[string][]byte{v1alpha1.CachePassword: []byte("long-enough")}}))
	w.must()
	if w.trouble() != "" {
		t.Errorf("it is told still: %s", w.trouble())
	}
	w.o.Troubles.Forget(key)
	if _, _, looked := w.o.Troubles.Known(key); looked {
		t.Error("a group that is gone is remembered")
	}
}

// The password before stays known until there is another one: engines that have not taken the new one yet are reached with it.
func TestThePasswordOfBefore(t *testing.T) {
	w := newWorld(t)
	passwords := func() (now, before string) {
		w.must()
		s := &corev1.Secret{}
		w.check(w.c.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: v1alpha1.CacheAuthSecret(key.Name)}, s))
		return string(s.Data[v1alpha1.CachePassword]), string(s.Data[v1alpha1.CachePasswordPrevious])
	}
	first, before := passwords()
	if again, _ := passwords(); !render.ValidCachePassword(first) || before != "" || again != first {
		t.Fatalf("%q, before it %q, then %q", first, before, again)
	}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "theirs"}, Data: map[string][]byte{v1alpha1.CachePassword: []byte("the-second")}}
	w.check(w.c.Create(t.Context(), theirs))
	w.group.Spec.Cache.Auth.SecretName = "theirs"
	for range 2 {
		if now, before := passwords(); now != "the-second" || before != first {
			t.Errorf("%q, before it %q", now, before)
		}
	}
	theirs.Data[v1alpha1.CachePassword] = []byte("the-third")
	w.check(w.c.Update(t.Context(), theirs))
	if now, before := passwords(); now != "the-third" || before != "the-second" {
		t.Errorf("%q, before it %q", now, before)
	}
	w.group.Spec.Cache.Auth.SecretName = v1alpha1.CacheAuthSecret(key.Name) // the generated one, by its name
	if now, before := passwords(); now != "the-third" || before != "the-second" {
		t.Errorf("%q, before it %q", now, before)
	}
}

// The annotation that asks the master to leave is this package's only where it says so: one of another cause is neither taken away nor changed.
func TestWhoIsAskedToLeave(t *testing.T) {
	const leaving = v1alpha1.AnnotationCacheLeaving
	for name, tc := range map[string]struct {
		before, after string
		old           bool
	}{
		"nobody":                           {},
		"the master, for an update":        {old: true, after: "Update"},
		"it was asked already":             {before: "Update", old: true, after: "Update"},
		"no longer":                        {before: "Update"},
		"for another cause, and it stays":  {before: "Drain", after: "Drain"},
		"another cause, and an update too": {before: "Drain", old: true, after: "Drain"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must()
			w.run("a", "b", "c")
			w.master("a")
			pod := w.pod("a")
			pod.Labels[v1alpha1.LabelCacheTraffic] = v1alpha1.CacheTrafficOn
			if tc.before != "" {
				pod.Annotations[leaving] = tc.before
			}
			if tc.old {
				pod.Annotations[v1alpha1.AnnotationSpecHash] = "of before"
			}
			w.check(w.c.Update(t.Context(), pod))
			out := w.must()
			if got := w.pod("a").Annotations[leaving]; got != tc.after || (out.Asked != "") != (tc.after != tc.before && tc.after != "") {
				t.Errorf("annotation %q, %+v", got, out)
			}
			if out.Replaced != "" || w.pod("b") == nil || w.pod("c") == nil {
				t.Errorf("a pod is replaced: %+v", out)
			}
		})
	}
}

// Pods are replaced one at a time, and never while a person has to settle something, or has paused the group.
func TestWhatKeepsPodsFromBeingReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(w *world)
		replaced string
	}{
		"nothing":                {func(*world) {}, "b"},
		"a group that is paused": {func(w *world) { w.paused = "tomorrow" }, ""},
		"a master that refuses new clients": {func(w *world) {
			w.group.Status.Conditions = append(w.group.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionCacheReady, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ReasonCacheFull),
			})
		}, ""},
		"a password that is none": {func(w *world) { w.group.Spec.Cache.Auth.SecretName = "missing" }, ""},
		"an object that is refused": {func(w *world) {
			w.refuse = func(string) error { return apierrors.NewForbidden(schema.GroupResource{}, "x", errAway) }
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must()
			w.run("a", "b", "c")
			w.master("a")
			w.group.Spec.Cache.Image = "valkey/valkey:next"
			tc.change(w)
			if out := w.must(); out.Replaced != tc.replaced || (w.pod("b") == nil) != (tc.replaced != "") {
				t.Errorf("%+v", out)
			}
		})
	}
}

// The pod that is to be the master is not replaced early, though it does not answer; any other one is.
func TestTheTargetOfAMoveIsNotReplaced(t *testing.T) {
	for to, replaced := range map[string]string{"b": "", "c": "b"} {
		w := newWorld(t)
		w.must()
		w.run("a", "b", "c")
		w.master("a")
		w.group.Status.Cache.Transition = &v1alpha1.CacheTransition{From: "a", To: to}
		w.group.Status.Cache.Sites[1].Role = ""
		pod := w.pod("b")
		pod.Status.Conditions = nil
		w.check(w.c.Status().Update(t.Context(), pod))
		w.group.Spec.Cache.Image = "valkey/valkey:next"
		if out := w.must(); out.Replaced != replaced || (w.pod("b") == nil) != (replaced != "") {
			t.Errorf("to %s: %+v", to, out)
		}
	}
}

// A pod that got the traffic after it was read is not replaced.
func TestAPodThatChangedMeanwhileIsNotReplaced(t *testing.T) {
	w := newWorld(t)
	w.must()
	w.run("a", "b", "c")
	w.master("a")
	w.group.Spec.Cache.Image = "valkey/valkey:next"
	real, is := w.c.(client.WithWatch)
	if !is {
		t.Fatalf("%T cannot be intercepted", w.c)
	}
	w.o.Client = interceptor.NewClient(real, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			pod := w.pod("b")
			pod.Labels[v1alpha1.LabelCacheTraffic] = v1alpha1.CacheTrafficOn
			w.check(c.Update(ctx, pod))
			return c.Delete(ctx, obj, opts...)
		},
	})
	if out := w.must(); out.Replaced != "" || out.Again == 0 || w.pod("b") == nil {
		t.Errorf("%+v", out)
	}
}

// An image that the installation does not allow makes no pods; those that there are keep theirs.
func TestAnImageThatIsNotAllowed(t *testing.T) {
	w := newWorld(t)
	w.o.Limits = limits.Limits{Images: []string{"valkey/valkey"}}
	w.group.Spec.Cache.Image = "evil/valkey:1"
	if out := w.must(); len(out.Refused) != 1 || out.Refused[0].Reason != v1alpha1.ReasonImageNotAllowed || len(w.sets()) != 0 {
		t.Errorf("%+v, StatefulSets of %v", out, w.sets())
	}
	w.group.Spec.Cache.Image = ""
	w.must()
	w.run("a", "b", "c")
	w.master("a")
	w.group.Spec.Cache.Image = "evil/valkey:1"
	if out := w.must(); len(out.Refused) != 1 || out.Replaced != "" {
		t.Errorf("%+v", out)
	}
	if image := w.pod("b").Spec.Containers[0].Image; image != render.ValkeyImage {
		t.Errorf("it runs %s", image)
	}
}
