// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// cached is a group with a cache store in which nothing is wrong.
func cached(t *testing.T) (World, []runtime.Object) {
	t.Helper()
	w, objects := well()
	w.Group.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"}
	w.Group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Engine: v1alpha1.CacheValkey, MaxMemory: resource.MustParse("512Mi")}
	w.Group.Status.ActiveSite = "paris"
	w.Group.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionCacheReady, Status: metav1.ConditionTrue, Reason: "AsExpected"}}
	w.Group.Status.Cache = &v1alpha1.CacheStatus{ActiveSite: "paris", Sites: []v1alpha1.CacheSiteStatus{
		{Name: "paris", Role: v1alpha1.CacheMaster, UsedMemory: ptr(resource.MustParse("100Mi"))}, {Name: "rome", Role: v1alpha1.CacheReplica, Link: "Up"}}}
	w.CacheCertificate = &Certificate{PEM: certificate(t, "orders-cache.shop.svc", "orders-cache-paris.shop.svc", "orders-cache-rome.shop.svc")}
	for i, site := range []string{"paris", "rome"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-cache-" + site + "-0", Labels: map[string]string{
			v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelSite: site, v1alpha1.LabelCacheRole: "replica"}},
			Spec: corev1.PodSpec{NodeName: []string{"worker-1", "worker-2"}[i]}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Image: "valkey:9"}}}}
		if site == "paris" {
			pod.Labels[v1alpha1.LabelCacheRole], pod.Labels[v1alpha1.LabelCacheTraffic] = "master", "enabled"
		}
		objects = append(objects, pod)
		change(objects, pod.Spec.NodeName, func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}
		})
	}
	return w, append(objects,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-cache"}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-cache-x", Labels: map[string]string{discoveryv1.LabelServiceName: "orders-cache"}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr(true)}}}})
}

// certificate is one for these names.
func certificate(t *testing.T, names ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestCacheIsWell(t *testing.T) {
	w, objects := cached(t)
	w.Kube = fake.NewClientset(objects...)
	found := cacheStore(t.Context(), w)
	if len(found) != 1 || found[0].Level != OK || !strings.Contains(found[0].Message, "the master is on paris") {
		t.Errorf("%+v", found)
	}
	w.Group.Spec.Cache.Storage = &v1alpha1.CacheStorage{Size: resource.MustParse("1Gi")}
	if found := cacheStore(t.Context(), w); len(found) != 1 || found[0].Level != OK {
		t.Errorf("the volumes hold two snapshots: %+v", found)
	}
	w.Group.Spec.Cache.Enabled = false
	if found := cacheStore(t.Context(), w); found != nil {
		t.Errorf("it is off: %+v", found)
	}
}

// TestCacheFindings spoils one thing at a time.
func TestCacheFindings(t *testing.T) {
	waiting := func(reason string) func(*World, []runtime.Object) []runtime.Object {
		return func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "orders-cache-rome-0", func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: "the kubelet's words"}
			})
			return o
		}
	}
	of := func(with func(*v1alpha1.MysqlFailoverGroup)) func(*World, []runtime.Object) []runtime.Object {
		return func(w *World, o []runtime.Object) []runtime.Object {
			with(w.Group)
			return o
		}
	}
	for name, tc := range map[string]struct {
		spoil func(*World, []runtime.Object) []runtime.Object
		level Level
		says  string
	}{
		"NotReady": {of(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions[0].Status, g.Status.Conditions[0].Reason, g.Status.Conditions[0].Message = metav1.ConditionFalse, "Because", "the Secret has no key password"
		}), Fail, "not ready: the Secret has no key password [Because]"},
		"NotSeenYet": {of(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Conditions = nil }), Warn, "said nothing"},
		"NoService":  {func(_ *World, o []runtime.Object) []runtime.Object { return without(o, "orders-cache") }, Fail, "no Service orders-cache"},
		"NoEndpoint": {func(_ *World, o []runtime.Object) []runtime.Object { return without(o, "orders-cache-x") }, Fail, "has no endpoint"},
		"NoReadyEndpoint": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "orders-cache-x", func(e *discoveryv1.EndpointSlice) { e.Endpoints[0].Conditions.Ready = ptr(false) })
			return o
		}, Fail, "has no endpoint"},
		"TwoMasters": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "orders-cache-rome-0", func(p *corev1.Pod) {
				p.Labels[v1alpha1.LabelCacheRole], p.Labels[v1alpha1.LabelCacheTraffic] = "master", "enabled"
			})
			return o
		}, Fail, "two pods are labelled as the master that takes the traffic: paris and rome"},
		"TwoSayMaster": {of(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Cache.Sites[1].Role = v1alpha1.CacheMaster }), Warn, "paris and rome call themselves the master"},
		"NoPod":        {func(_ *World, o []runtime.Object) []runtime.Object { return without(o, "orders-cache-rome-0") }, Fail, "the cache of rome has no pod"},
		"FitsNoNode": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "orders-cache-rome-0", func(p *corev1.Pod) {
				p.Spec.NodeName = ""
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes: insufficient memory"}}
			})
			return o
		}, Fail, "fits no node: 0/3 nodes"},
		"NoImage":  {waiting("ImagePullBackOff"), Fail, "cannot be had (valkey:9): the kubelet's words"},
		"NoKey":    {waiting("CreateContainerConfigError"), Fail, "cannot start: the kubelet's words"},
		"Crashing": {waiting("CrashLoopBackOff"), Fail, "again and again"},
		"Killed": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "orders-cache-rome-0", func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled"}
			})
			return o
		}, Fail, "reached its memory limit"},
		"Silent":   {of(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Cache.Sites[1] = v1alpha1.CacheSiteStatus{Name: "rome"} }), Fail, "does not answer the operator: a failover to rome loses the sessions"},
		"LinkDown": {of(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Cache.Sites[1].Link = "Down" }), Warn, "(link Down)"},
		"Limit": {of(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.Cache.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
		}), Fail, "the memory limit 512Mi leaves no room"},
		"Volume": {of(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.Cache.Storage = &v1alpha1.CacheStorage{Size: resource.MustParse("1023Mi")}
		}), Warn, "has 1023Mi, less than twice maxMemory 512Mi"},
		"Node": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "worker-2", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("500Mi") })
			return o
		}, Fail, "node worker-2 of the cache of rome has 500Mi for pods"},
		"Full": {of(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Cache.Sites[0].UsedMemory = ptr(resource.MustParse("470Mi"))
		}), Warn, "the cache of paris holds 470Mi of 512Mi"},
		"Names": {func(w *World, o []runtime.Object) []runtime.Object {
			w.CacheCertificate.PEM = certificate(t, "orders-cache.shop.svc")
			return o
		}, Warn, "orders-cache-paris.shop.svc, orders-cache-rome.shop.svc"},
		"NoCertificate": {func(w *World, o []runtime.Object) []runtime.Object {
			w.CacheCertificate = &Certificate{Err: errors.New("no pod of the group runs")}
			return o
		}, Unknown, "no pod of the group runs"},
	} {
		t.Run(name, func(t *testing.T) {
			w, objects := cached(t)
			objects = tc.spoil(&w, objects)
			w.Kube = fake.NewClientset(objects...)
			found := cacheStore(t.Context(), w)
			if len(found) != 1 || found[0].Level != tc.level || !strings.Contains(found[0].Message, tc.says) || found[0].Remedy == "" && tc.level != Unknown {
				t.Errorf("%+v", found)
			}
		})
	}
}
