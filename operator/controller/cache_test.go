// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

func withCache(g *v1alpha1.MysqlFailoverGroup) {
	g.Spec.Cache = &v1alpha1.CacheSpec{
		Enabled: true, Engine: v1alpha1.CacheValkey, MaxMemory: resource.MustParse("512Mi"), Storage: &v1alpha1.CacheStorage{Size: resource.MustParse("1Gi")},
	}
}

// cachedWorld is a world with a cache whose pods run, with a as the master.
func cachedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, scopetest.Group(withCache))
	w.reconcile()
	w.settle("a", "b", "c")
	w.settleCache("a", "b", "c")
	w.cacheStatus("a")
	w.trafficTo("a")
	w.reconcile()
	return w
}

// settleCache does what the StatefulSet controller and the kubelet do.
func (w *world) settleCache(sites ...string) {
	w.t.Helper()
	for _, site := range sites {
		var set appsv1.StatefulSet
		w.get(&set, v1alpha1.CacheSiteName(scopetest.Key.Name, site))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: set.Name + "-0",
			UID:    types.UID("cache-" + site + set.Annotations[v1alpha1.AnnotationSpecHash]),
			Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations}, Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		w.must(client.IgnoreNotFound(w.c.Delete(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})))
		w.must(w.c.Create(w.ctx, pod))
	}
}

// cacheStatus applies what the loop of the cache writes.
func (w *world) cacheStatus(master string) {
	w.t.Helper()
	status := applyv1alpha1.CacheStatus().WithActiveSite(master)
	for _, s := range w.group().Spec.Sites {
		is := applyv1alpha1.CacheSiteStatus().WithName(s.Name).WithRole(v1alpha1.CacheReplica).WithLink("Up")
		if s.Name == master {
			is.WithRole(v1alpha1.CacheMaster).WithLink("")
		}
		status.WithSites(is)
	}
	config := applyv1alpha1.MysqlFailoverGroup(scopetest.Key.Name, scopetest.Key.Namespace).WithStatus(applyv1alpha1.MysqlFailoverGroupStatus().WithCache(status))
	w.must(w.c.Status().Apply(w.ctx, config, client.FieldOwner(v1alpha1.ManagerCacheStatus), client.ForceOwnership))
}

// trafficTo labels as the loop of the cache does.
func (w *world) trafficTo(master string) {
	w.t.Helper()
	for _, s := range w.group().Spec.Sites {
		pod := w.cachePod(s.Name)
		if pod == nil {
			continue
		}
		pod.Labels[v1alpha1.LabelCacheRole] = string(v1alpha1.CacheReplica)
		delete(pod.Labels, v1alpha1.LabelCacheTraffic)
		if s.Name == master {
			pod.Labels[v1alpha1.LabelCacheRole], pod.Labels[v1alpha1.LabelCacheTraffic] = string(v1alpha1.CacheMaster), v1alpha1.CacheTrafficOn
		}
		w.must(w.c.Update(w.ctx, pod))
	}
}

// cachePod is the pod of a site's cache; nil if there is none.
func (w *world) cachePod(site string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	err := w.c.Get(w.ctx, types.NamespacedName{Namespace: scopetest.Key.Namespace, Name: v1alpha1.CacheSiteName(scopetest.Key.Name, site) + "-0"}, pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return pod
}

// cacheObjects are the names of what there is of the cache, by kind.
func (w *world) cacheObjects() []string {
	w.t.Helper()
	var out []string
	for kind, list := range map[string]client.ObjectList{
		"set": &appsv1.StatefulSetList{}, "service": &corev1.ServiceList{}, "budget": &policyv1.PodDisruptionBudgetList{},
		"config": &corev1.ConfigMapList{}, "secret": &corev1.SecretList{}, "volume": &corev1.PersistentVolumeClaimList{},
	} {
		w.must(w.c.List(w.ctx, list, client.InNamespace(scopetest.Key.Namespace), client.MatchingLabels(render.CacheLabels(scopetest.Key.Name))))
		names := objectNames(list)
		for _, name := range names {
			out = append(out, kind+" "+name)
		}
	}
	slices.Sort(out)
	return out
}

func objectNames(list client.ObjectList) (out []string) {
	switch l := list.(type) {
	case *appsv1.StatefulSetList:
		for _, o := range l.Items {
			out = append(out, o.Name)
		}
	case *corev1.ServiceList:
		for _, o := range l.Items {
			out = append(out, o.Name)
		}
	case *policyv1.PodDisruptionBudgetList:
		for _, o := range l.Items {
			out = append(out, o.Name)
		}
	case *corev1.ConfigMapList:
		for _, o := range l.Items {
			out = append(out, o.Name)
		}
	case *corev1.SecretList:
		for _, o := range l.Items {
			out = append(out, o.Name)
		}
	case *corev1.PersistentVolumeClaimList:
		for _, o := range l.Items {
			out = append(out, o.Name)
		}
	}
	return out
}

func TestACacheComesAndGoesWithoutMySQLNoticing(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	w.reconcile()
	w.settle("a", "b", "c")
	before := w.deployments()
	if got := w.cacheObjects(); len(got) != 0 {
		t.Fatalf("without a cache there is %v", got)
	}
	w.change(withCache)
	w.reconcile()
	want := strings.Fields(`budget,orders-cache-a budget,orders-cache-b budget,orders-cache-c config,orders-cache-config secret,orders-cache-auth
		service,orders-cache service,orders-cache-a service,orders-cache-b service,orders-cache-c set,orders-cache-a set,orders-cache-b set,orders-cache-c
		volume,orders-cache-a-data volume,orders-cache-b-data volume,orders-cache-c-data`)
	for i := range want {
		want[i] = strings.Replace(want[i], ",", " ", 1)
	}
	if got := w.cacheObjects(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if c := w.condition(v1alpha1.ConditionUnbuiltFeatures); c.Type != "" {
		t.Errorf("condition %+v", c)
	}
	w.settleCache("a", "b", "c")
	w.reconcile()
	writes := w.writes
	w.reconcile()
	if w.writes != writes {
		t.Errorf("%d writes although nothing changed", w.writes-writes)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Enabled = false })
	w.reconcile()
	if got := w.cacheObjects(); len(got) != 0 {
		t.Errorf("turned off it leaves %v", got)
	}
	for site, hash := range w.deployments() {
		if before[site] != hash {
			t.Errorf("MySQL of %s is replaced", site)
		}
	}
}

// TestPreparedObjectsOutliveTheCache: a Secret and a volume that were there before, of names that a cache uses, may be another application's.
func TestPreparedObjectsOutliveTheCache(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: name}
	}
	secret := &corev1.Secret{ObjectMeta: meta(v1alpha1.CacheAuthSecret(scopetest.Key.Name)), Data: map[string][]byte{v1alpha1.CachePassword: []byte("somebodys-own")}}
	volume := &corev1.PersistentVolumeClaim{ObjectMeta: meta(v1alpha1.CacheVolumeName(scopetest.Key.Name, "a"))}
	w := newWorld(t, scopetest.Group(withCache), secret, volume)
	w.reconcile()
	for on := range 2 {
		for _, obj := range []client.Object{secret, volume} {
			if w.get(obj, obj.GetName()); obj.GetLabels()[v1alpha1.LabelGroup] != scopetest.Key.Name || len(obj.GetOwnerReferences()) != 0 {
				t.Errorf("%d: %s is not used as it was prepared: labels %v, owners %v", on, obj.GetName(), obj.GetLabels(), obj.GetOwnerReferences())
			}
		}
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Enabled = false })
		w.reconcile()
		if got := w.cacheObjects(); !slices.Equal(got, []string{"secret " + secret.Name, "volume " + volume.Name}) {
			t.Errorf("%d: turned off it leaves %v", on, got)
		}
		if w.get(secret, secret.Name); string(secret.Data[v1alpha1.CachePassword]) != "somebodys-own" {
			t.Errorf("%d: the Secret has other content", on)
		}
		w.change(withCache)
		w.reconcile()
	}
}

// One at a time, replicas first, and the master's pod not before the role has gone.
func TestCachePodsAreReplacedInTurn(t *testing.T) {
	w := cachedWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Image = "valkey/valkey:next" })
	for _, site := range []string{"b", "c"} {
		w.reconcile()
		if w.cachePod(site) != nil {
			t.Fatalf("the pod of %s is still there", site)
		}
		for _, other := range []string{"a", "b", "c"} {
			if other != site && w.cachePod(other) == nil {
				t.Fatalf("with %s, %s is gone too", site, other)
			}
		}
		w.reconcile() // nothing more while it is missing
		w.settleCache(site)
	}
	w.reconcile()
	if pod := w.cachePod("a"); pod == nil || pod.Annotations[v1alpha1.AnnotationCacheLeaving] == "" {
		t.Fatalf("the master is not asked to leave: %+v", pod)
	}
	w.reconcile()
	if w.cachePod("a") == nil {
		t.Fatal("the master's pod is deleted before the role has moved")
	}
	if n := w.said.Count(eventCacheAskedToLeave.Reason); n != 1 {
		t.Errorf("told %d times", n)
	}
	w.cacheStatus("b")
	w.trafficTo("b")
	w.reconcile() // it is no longer asked to leave
	w.reconcile()
	if w.cachePod("a") != nil {
		t.Fatal("the last pod is not replaced")
	}
	w.settleCache("a")
	w.reconcile()
	for _, site := range []string{"a", "b", "c"} {
		if pod := w.cachePod(site); pod.Annotations[v1alpha1.AnnotationCacheLeaving] != "" || pod.Spec.Containers[0].Image != "valkey/valkey:next" {
			t.Errorf("%s: %v, %s", site, pod.Annotations, pod.Spec.Containers[0].Image)
		}
	}
}

func TestAPausedGroupReplacesNoCachePod(t *testing.T) {
	w := cachedWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Cache.Image = "valkey/valkey:next"
		g.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	})
	w.reconcile()
	for _, site := range []string{"a", "b", "c"} {
		if w.cachePod(site) == nil {
			t.Errorf("%s is replaced", site)
		}
	}
}

// A new password is in the file for pods that start at once, and the one before it stays where the loop finds it.
func TestACachesPasswordIsReplaced(t *testing.T) {
	w := cachedWorld(t)
	secret := func() *corev1.Secret {
		s := &corev1.Secret{}
		w.get(s, v1alpha1.CacheAuthSecret(scopetest.Key.Name))
		return s
	}
	first := string(secret().Data[v1alpha1.CachePassword])
	s := secret()
	s.Data[v1alpha1.CachePassword] = []byte("a-new-password")
	w.must(w.c.Update(w.ctx, s))
	for range 2 {
		w.reconcile()
		s = secret()
		if string(s.Data[v1alpha1.CachePasswordPrevious]) != first || string(s.Data[v1alpha1.CachePassword]) != "a-new-password" ||
			!strings.Contains(string(s.Data["auth.conf"]), "requirepass a-new-password") {
			t.Fatalf("the Secret holds %q", s.Data)
		}
	}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "theirs"}, Data: map[string][]byte{"password": []byte("bad one\n")}}
	w.must(w.c.Create(w.ctx, theirs))
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Auth.SecretName = "theirs" })
	w.reconcile()
	if reason, text := w.r.CacheTroubles.Of(scopetest.Key); reason != v1alpha1.ReasonSecretUnusable || strings.Contains(text, "bad one") {
		t.Errorf("%s %s", reason, text)
	}
	if string(secret().Data[v1alpha1.CachePassword]) != "a-new-password" {
		t.Error("a password that is unusable takes the good one away")
	}
	theirs.Data["password"] = []byte("their-own-password")
	w.must(w.c.Update(w.ctx, theirs))
	w.reconcile()
	if s := secret(); string(s.Data[v1alpha1.CachePassword]) != "their-own-password" || string(s.Data[v1alpha1.CachePasswordPrevious]) != "a-new-password" {
		t.Errorf("the Secret holds %q", s.Data)
	}
	if reason, _ := w.r.CacheTroubles.Of(scopetest.Key); reason != "" {
		t.Errorf("still %s", reason)
	}
}

// What belongs to another group stays as it is, the cache says so, and MySQL is looked after all the same.
func TestACacheThatWouldTakeAnotherGroupsService(t *testing.T) {
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: v1alpha1.CacheService(scopetest.Key.Name),
		Labels: render.GroupLabels("other")}}
	w := newWorld(t, scopetest.Group(withCache), theirs)
	w.reconcile()
	if len(w.deployments()) != 3 {
		t.Error("MySQL has to wait")
	}
	if reason, text := w.r.CacheTroubles.Of(scopetest.Key); reason != v1alpha1.ReasonForeignObject || !strings.Contains(text, "other") {
		t.Errorf("%s %s", reason, text)
	}
	w.get(theirs, theirs.Name)
	if theirs.Labels[v1alpha1.LabelGroup] != "other" || len(theirs.Spec.Selector) != 0 {
		t.Errorf("the other group's Service was changed: %+v", theirs)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Enabled = false })
	w.reconcile()
	w.get(theirs, theirs.Name)
}

func TestRefusedCacheSettingsAndImages(t *testing.T) {
	w := cachedWorld(t)
	w.r.Limits = limits.Limits{Images: []string{"mysql", "valkey/valkey"}}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Cache.Config = map[string]v1alpha1.CacheSetting{"replicaof": "a 1"}
		g.Spec.Cache.Image = "evil/valkey:1"
	})
	w.reconcile()
	c := w.condition(v1alpha1.ConditionSpecRefused)
	if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "replicaof") || !strings.Contains(c.Message, "evil/valkey:1") {
		t.Errorf("condition %+v", c)
	}
	var set appsv1.StatefulSet
	w.get(&set, v1alpha1.CacheSiteName(scopetest.Key.Name, "a"))
	if image := set.Spec.Template.Spec.Containers[0].Image; image != render.ValkeyImage {
		t.Errorf("runs %s", image)
	}
	fresh := newWorld(t, scopetest.Group(withCache, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Image = "evil/valkey:1" }))
	fresh.r.Limits = limits.Limits{Images: []string{"mysql"}}
	fresh.reconcile()
	if slices.ContainsFunc(fresh.cacheObjects(), func(o string) bool { return strings.HasPrefix(o, "set ") }) {
		t.Errorf("pods are made: %v", fresh.cacheObjects())
	}
}

func TestACacheOfASiteThatLeft(t *testing.T) {
	w := cachedWorld(t)
	leave := func(name string) {
		w.change(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.Sites = slices.DeleteFunc(g.Spec.Sites, func(s v1alpha1.Site) bool { return s.Name == name })
		})
		w.reconcile()
	}
	has := func(site string) bool {
		return slices.Contains(w.cacheObjects(), "set orders-cache-"+site) || slices.Contains(w.cacheObjects(), "volume orders-cache-"+site+"-data")
	}
	leave("c")
	if has("c") {
		t.Errorf("left: %v", w.cacheObjects())
	}
	leave("a")
	if !has("a") {
		t.Error("the master went before the role had moved")
	}
	w.cacheStatus("b")
	w.reconcile()
	if has("a") || !has("b") {
		t.Errorf("left: %v", w.cacheObjects())
	}
}

// A pod whose engine does not read its new certificate is replaced as for an update: replicas first, and the master's only once the role
// has gone.
func TestACachePodThatIsStaleIsReplacedInItsTurn(t *testing.T) {
	w := cachedWorld(t)
	for _, site := range []string{"a", "b"} {
		pod := w.cachePod(site)
		pod.Annotations[v1alpha1.AnnotationCacheStale] = "Certificate"
		w.must(w.c.Update(w.ctx, pod))
	}
	w.reconcile()
	if w.cachePod("b") != nil || w.cachePod("a") == nil || w.cachePod("c") == nil {
		t.Fatal("the replica is not the one that is replaced")
	}
	w.settleCache("b")
	w.reconcile()
	if pod := w.cachePod("a"); pod == nil || pod.Annotations[v1alpha1.AnnotationCacheLeaving] == "" {
		t.Fatalf("the master is not asked to leave: %+v", pod)
	}
	w.cacheStatus("b")
	w.trafficTo("b")
	w.reconcile() // it is no longer asked to leave
	w.reconcile()
	if w.cachePod("a") != nil {
		t.Fatal("the last pod is not replaced")
	}
	w.settleCache("a")
	w.reconcile()
	for _, site := range []string{"a", "b", "c"} {
		if pod := w.cachePod(site); pod == nil || pod.Annotations[v1alpha1.AnnotationCacheStale] != "" {
			t.Errorf("%s: %+v", site, pod)
		}
	}
}
