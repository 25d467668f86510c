// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// The followers against a real API server, with exactly the rights of the chart: first without the definition of
// external-dns and without the right to change nodes, then with both, through a failover, to the end of the group.
func TestSteeringAgainstAPIServer(t *testing.T) {
	c := newCluster(t)
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scopetest.Key.Namespace}})
	c.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "default"}})
	for _, site := range []string{"a", "b"} {
		c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + site}})
	}
	c.createGroup()
	c.monitor("a", 1)
	c.openAt("a", 1)
	c.settle("a", "b")
	c.bind("a", "b")

	c.edit(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.DNS = &v1alpha1.DNSSpec{Name: "db.example.org", TTLSeconds: 15}
		g.Spec.Taints = &v1alpha1.TaintsSpec{Enabled: true}
		g.Spec.Sites[0].ExternalAddress, g.Spec.Sites[1].ExternalAddress = "192.0.2.1", "b.example.org"
	})
	c.eventually("what is missing is told", func() bool {
		return c.reason(v1alpha1.ConditionDNSReady) == v1alpha1.ReasonExternalDNSMissing &&
			c.reason(v1alpha1.ConditionTaintsReady) == v1alpha1.ReasonForbidden
	})
	_, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "dnsendpoints.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	c.allow("mfg-nodes", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}})
	c.edit(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DNS.TTLSeconds = 20 })
	c.eventually("both follow", c.steeredTo("A", "192.0.2.1", "", mine("b")[0]))

	t.Run("confirmation", func(*testing.T) { c.confirmsRecord() })
	t.Run("quiet", func(*testing.T) { c.steersQuietly() })
	c.monitor("b", 2)
	c.openAt("b", 2)
	c.r.Wake(scopetest.Key)
	c.eventually("both follow the failover", c.steeredTo("CNAME", "b.example.org", mine("a")[0], ""))
	t.Run("external-dns is removed", func(*testing.T) { c.losesExternalDNS() })
	c.deleteGroup()
	for _, node := range []string{"node-a", "node-b"} {
		if got := c.taintsOf(node); got != "" {
			t.Errorf("%s keeps %s", node, got)
		}
	}
}

// allow gives the operator further rights.
func (c *cluster) allow(name string, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	c.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	c.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "mfg-operator"}},
	})
}

func (c *cluster) openAt(site string, epoch int64) {
	c.facts.Open(site)
	c.facts.Mu.Lock()
	defer c.facts.Mu.Unlock()
	c.facts.G.Epoch = epoch
}

// bind does what the scheduler does.
func (c *cluster) bind(sites ...string) {
	c.t.Helper()
	for _, site := range sites {
		var pods corev1.PodList
		if err := c.admin.List(c.t.Context(), &pods, client.InNamespace(scopetest.Key.Namespace), client.MatchingLabels{v1alpha1.LabelSite: site}); err != nil {
			c.t.Fatal(err)
		}
		for i := range pods.Items {
			binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node-" + site}}
			if err := c.admin.SubResource("binding").Create(c.t.Context(), &pods.Items[i], binding); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

func (c *cluster) reason(condition string) v1alpha1.Reason {
	if found := meta.FindStatusCondition(c.group().Status.Conditions, condition); found != nil {
		return v1alpha1.Reason(found.Reason)
	}
	return ""
}

func (c *cluster) endpoint() *unstructured.Unstructured {
	c.t.Helper()
	out := render.NoDNSEndpoint(render.Input{Group: scopetest.Group()})
	err := c.admin.Get(c.t.Context(), client.ObjectKeyFromObject(out), out)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// taintsOf are the group's taints of a node. The API server of this test has taints of its own for nodes without a kubelet.
func (c *cluster) taintsOf(node string) string {
	c.t.Helper()
	n := &corev1.Node{}
	if err := c.admin.Get(c.t.Context(), client.ObjectKey{Name: node}, n); err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, taint := range n.Spec.Taints {
		if strings.Contains(taint.Key, v1alpha1.Domain) {
			out = append(out, taint.ToString())
		}
	}
	return strings.Join(out, " ")
}

func (c *cluster) steeredTo(kind, target, onA, onB string) func() bool {
	return func() bool {
		endpoint := c.endpoint()
		if endpoint == nil || c.taintsOf("node-a") != onA || c.taintsOf("node-b") != onB {
			return false
		}
		list, _, _ := unstructured.NestedSlice(endpoint.Object, "spec", "endpoints")
		want := []any{map[string]any{"dnsName": "db.example.org", "recordType": kind, "recordTTL": int64(20), "targets": []any{target}}}
		return cmp.Equal(want, list) && c.reason(v1alpha1.ConditionDNSReady) == v1alpha1.ReasonAsExpected &&
			c.reason(v1alpha1.ConditionTaintsReady) == v1alpha1.ReasonAsExpected
	}
}

// confirmsRecord does what external-dns does once it has taken a record over.
func (c *cluster) confirmsRecord() {
	endpoint := c.endpoint()
	if owner := metav1.GetControllerOf(endpoint); owner == nil || owner.UID != c.group().UID {
		c.t.Errorf("owner %+v", owner)
	}
	if err := unstructured.SetNestedField(endpoint.Object, endpoint.GetGeneration(), "status", "observedGeneration"); err != nil {
		c.t.Fatal(err)
	}
	if err := c.admin.Status().Update(c.t.Context(), endpoint); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the confirmation is told", func() bool {
		c.r.Wake(scopetest.Key)
		found := meta.FindStatusCondition(c.group().Status.Conditions, v1alpha1.ConditionDNSReady)
		return found != nil && strings.Contains(found.Message, "has taken it over")
	})
}

// steersQuietly checks that nothing is written while nothing changes.
func (c *cluster) steersQuietly() {
	versions := func() []string {
		var nodes corev1.NodeList
		if err := c.admin.List(c.t.Context(), &nodes); err != nil {
			c.t.Fatal(err)
		}
		out := []string{c.endpoint().GetResourceVersion(), c.group().ResourceVersion}
		for _, n := range nodes.Items {
			out = append(out, n.ResourceVersion)
		}
		return out
	}
	before := versions()
	for range 5 {
		c.r.Wake(scopetest.Key)
		time.Sleep(200 * time.Millisecond)
	}
	if after := versions(); !slices.Equal(before, after) {
		c.t.Errorf("written although nothing changed: %v, %v", before, after)
	}
}

// losesExternalDNS takes the definition away under a controller that has used it, and then the wish for a record.
func (c *cluster) losesExternalDNS() {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "dnsendpoints.externaldns.k8s.io"}}
	err := envtest.UninstallCRDs(c.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the loss is told", func() bool {
		c.r.Wake(scopetest.Key)
		return c.reason(v1alpha1.ConditionDNSReady) == v1alpha1.ReasonExternalDNSMissing
	})
	c.edit(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DNS = nil })
	c.eventually("the condition goes", func() bool { return c.reason(v1alpha1.ConditionDNSReady) == "" })
}
