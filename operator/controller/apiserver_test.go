// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/clone"
	"github.com/mysql-mfg/mfg/operator/passwords"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/signing"
	"github.com/mysql-mfg/mfg/operator/work"
)

// A group's life against a real API server: every object is accepted and carries only what the operator means to own, the
// pod passes Pod Security restricted, two owners share status, nothing is written while nothing changes, and
// the data outlives the group.
func TestAgainstAPIServer(t *testing.T) {
	c := newCluster(t)
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: scopetest.Key.Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	c.createGroup()
	t.Run("pod security", func(*testing.T) { c.podIsAdmitted() })
	t.Run("the pod of a clone that hangs", func(*testing.T) { c.endsPods() })
	t.Run("two owners of status", func(*testing.T) { c.sharesStatus() })
	t.Run("ordered update", func(*testing.T) { c.updatesInOrder() })
	t.Run("a cache comes", func(*testing.T) { c.runsCache() })
	t.Run("quiet", func(*testing.T) { c.isQuiet() })
	t.Run("a cache goes", func(*testing.T) { c.endsCache() })
	t.Run("another key", func(*testing.T) { c.replacesKey() })
	t.Run("owners follow the policy", func(*testing.T) { c.changesOwners() })
	t.Run("a namespace that is deleted", func(*testing.T) { c.seesNamespaceEnd() })
	t.Run("deletion", func(*testing.T) { c.retains() })
	t.Run("a group of the same name", func(*testing.T) { c.goesOn() })
	t.Run("cert-manager", func(*testing.T) { c.asksForCertificate() })
}

// replacesKey loses the Secret with the key that signs: it is made again with the rights of the chart, the former one vouches for it,
// and no Deployment changes.
func (c *cluster) replacesKey() {
	read := func() (key signing.Key) {
		keys := &signing.Keys{Client: c.admin, Live: c.admin, Namespace: operatorNamespace}
		key, err := keys.Read(c.t.Context(), c.group())
		if err != nil && !apierrors.IsNotFound(err) {
			c.t.Fatal(err)
		}
		return key
	}
	pods := func() (all string) {
		for _, site := range []string{"a", "b"} {
			var d appsv1.Deployment
			if err := c.get(&d, v1alpha1.SiteName(scopetest.Key.Name, site)); err != nil {
				c.t.Fatal(err)
			}
			all += scope.SpecHash(&d) + " " + strconv.FormatInt(d.Generation, 10) + " "
		}
		return all
	}
	lose := func() {
		if err := c.admin.Delete(c.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: operatorNamespace, Name: v1alpha1.AuthoritySecret(c.group().UID),
		}}); err != nil {
			c.t.Fatal(err)
		}
		c.r.Wake(scopetest.Key)
		c.eventually("a key is made", func() bool { return read().Private != nil })
	}
	former, before := read(), pods()
	c.facts.SignedBy(former)
	lose()
	next := read()
	if by, ok := next.Chain.Last(former.Public()); !ok || !by.Equal(next.Public()) || next.Private.Equal(former.Private) {
		c.t.Errorf("nothing leads to the new key: a chain of %d", len(next.Chain))
	}
	// A person puts another one there, which nobody vouches for yet.
	c.facts.SignedBy(next)
	other, err := signing.New()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.admin.Delete(c.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: operatorNamespace, Name: v1alpha1.AuthoritySecret(c.group().UID),
	}}); err != nil {
		c.t.Fatal(err)
	}
	keys := &signing.Keys{Client: c.admin, Live: c.admin, Namespace: operatorNamespace}
	if other, err = keys.Create(c.t.Context(), c.group(), other); err != nil {
		c.t.Fatal(err)
	}
	c.r.Wake(scopetest.Key)
	c.eventually("the key in use vouches for the other one", func() bool {
		key := read()
		return key.Private.Equal(other.Private) && key.Chain.Has(former.Public()) && key.Chain.Has(next.Public())
	})
	if after := pods(); after != before {
		c.t.Errorf("Deployments were %s and are %s", before, after)
	}
}

// anyContent defines a kind of another project, with no schema.
func anyContent(group, version, plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		// The API server takes groups of k8s.io only with this annotation, which says who approved them.
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				},
			}},
		},
	}
}

// asksForCertificate makes a group whose certificate comes from cert-manager, first without and then with its CRD.
func (c *cluster) asksForCertificate() {
	c.create(&v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "secure"},
		Spec: v1alpha1.MysqlFailoverGroupSpec{
			Sites: []v1alpha1.Site{{Name: "a", Role: v1alpha1.PrimaryCandidate}, {Name: "b", Role: v1alpha1.PrimaryCandidate}},
			TLS:   &v1alpha1.TLSSpec{SecretName: "secure-tls", IssuerRef: &v1alpha1.IssuerRef{Name: "ca"}},
		},
	})
	reason := func(want v1alpha1.Reason) func() bool {
		return func() bool {
			g := &v1alpha1.MysqlFailoverGroup{}
			return c.get(g, "secure") == nil && slices.ContainsFunc(g.Status.Conditions, func(x metav1.Condition) bool {
				return x.Type == v1alpha1.ConditionTLSReady && x.Reason == string(want)
			})
		}
	}
	c.eventually("cert-manager is missed", reason(v1alpha1.ReasonCertManagerMissing))
	_, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		anyContent("cert-manager.io", "v1", "certificates", "Certificate"),
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.r.Wake(types.NamespacedName{Namespace: scopetest.Key.Namespace, Name: "secure"})
	c.eventually("the Secret is waited for", reason(v1alpha1.ReasonSecretMissing))
	certificate := &unstructured.Unstructured{}
	certificate.SetAPIVersion("cert-manager.io/v1")
	certificate.SetKind("Certificate")
	if err := c.get(certificate, render.CertificateName("secure")); err != nil {
		c.t.Error(err)
	}
	if err := c.get(&appsv1.Deployment{}, "mysql-secure-a"); !apierrors.IsNotFound(err) {
		c.t.Errorf("pods without a certificate: %v", err)
	}
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := c.get(g, "secure"); err != nil {
		c.t.Fatal(err)
	}
	g.Spec.TLS = nil
	if err := c.admin.Update(c.t.Context(), g, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "make a new group") {
		c.t.Errorf("TLS is taken off a group: %v", err)
	}
}

func (c *cluster) podIsAdmitted() {
	var d appsv1.Deployment
	if err := c.get(&d, "mysql-orders-a"); err != nil {
		c.t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "admitted", Labels: d.Spec.Template.Labels},
		Spec:       d.Spec.Template.Spec,
	}
	c.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "default"}})
	if err := c.admin.Create(c.t.Context(), pod, client.DryRunAll); err != nil {
		c.t.Errorf("the pod is not admitted: %v", err)
	}
	var service corev1.Service
	if err := c.get(&service, "mysql-orders-primary"); err != nil || service.Spec.Selector != nil {
		c.t.Errorf("primary service %+v: %v", service.Spec, err)
	}
}

// runsCache turns a cache on: the API server takes every object, with the rights of the chart, and the pod passes Pod Security restricted.
func (c *cluster) runsCache() {
	g := c.group()
	withCache(g)
	if err := c.admin.Update(c.t.Context(), g); err != nil {
		c.t.Fatal(err)
	}
	var set appsv1.StatefulSet
	c.eventually("cache objects", func() bool {
		return c.get(&set, "orders-cache-b") == nil && c.get(&corev1.PersistentVolumeClaim{}, "orders-cache-b-data") == nil
	})
	c.eventually("the looks are over that follow", func() bool {
		before := c.group().ResourceVersion
		time.Sleep(3 * time.Second) // whenMoving, and a little
		return c.group().ResourceVersion == before
	})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "cache-admitted", Labels: set.Spec.Template.Labels}, Spec: set.Spec.Template.Spec,
	}
	if err := c.admin.Create(c.t.Context(), pod, client.DryRunAll); err != nil {
		c.t.Errorf("the cache's pod is not admitted: %v", err)
	}
}

// endsCache turns it off again, which removes everything but what finalizers of Kubernetes keep.
func (c *cluster) endsCache() {
	g := c.group()
	g.Spec.Cache.Enabled = false
	if err := c.admin.Update(c.t.Context(), g); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("no cache objects", func() bool {
		var volume corev1.PersistentVolumeClaim
		kept := c.get(&volume, "orders-cache-b-data") == nil && volume.DeletionTimestamp == nil
		return !kept && apierrors.IsNotFound(c.get(&appsv1.StatefulSet{}, "orders-cache-b")) && apierrors.IsNotFound(c.get(&corev1.Service{}, "orders-cache")) &&
			apierrors.IsNotFound(c.get(&policyv1.PodDisruptionBudget{}, "orders-cache-b")) && apierrors.IsNotFound(c.get(&corev1.Secret{}, "orders-cache-auth"))
	})
}

// endsPods ends a pod with the rights of the chart, and not one that came after it under its name.
func (c *cluster) endsPods() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "hangs"},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{Name: "mysql", Image: "mysql", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
	c.create(pod)
	end := func(uid types.UID) (found bool) {
		if err := clone.EndPod(c.r.Client)(c.t.Context(), pod.Namespace, pod.Name, uid); err != nil {
			c.t.Errorf("end the pod: %v", err)
		}
		return c.get(&corev1.Pod{}, pod.Name) == nil
	}
	if !end("another") {
		c.t.Error("another pod of that name was ended")
	}
	for range 2 { // the second time it is gone already
		if end(pod.UID) {
			c.t.Error("the pod is still there")
		}
	}
}

func (c *cluster) sharesStatus() {
	c.monitor("a", 1)
	c.facts.Open("a")
	c.settle("a", "b")
	c.r.Work.Begin(scope.SiteKey{Group: scopetest.Key, Site: "b"}, func() {}).Finish(work.Outcome{Verdict: work.VerdictAdopt, Message: "adopted"})
	c.r.Wake(scopetest.Key)
	c.eventually("marks", func() bool {
		s := c.group().Status
		return len(s.Sites) == 2 && s.Sites[0].Provisioned && s.Sites[1].Provisioned && s.Sites[0].Version == "9.7.4"
	})
	c.monitor("a", 2)
	s := c.group().Status
	if s.Epoch != 2 || !s.Sites[0].Provisioned || s.Sites[0].State != v1alpha1.SiteReplica || s.ObservedGeneration == 0 || len(s.Conditions) == 0 {
		c.t.Errorf("status %+v", s)
	}
}

func (c *cluster) updatesInOrder() {
	hash := func(site string) string {
		var d appsv1.Deployment
		if err := c.get(&d, v1alpha1.SiteName(scopetest.Key.Name, site)); err != nil {
			c.t.Fatal(err)
		}
		return d.Annotations[v1alpha1.AnnotationSpecHash]
	}
	a, b := hash("a"), hash("b")
	c.edit(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = map[string]string{"max_connections": "77"} })
	c.eventually("update of the replica", func() bool { return hash("b") != b })
	if hash("a") != a {
		c.t.Error("the active site was updated first")
	}
	c.settle("b")
	c.eventually("wish to move the role", func() bool {
		_, wanted := c.r.Work.Leaving(scopetest.Key.Namespace, scopetest.Key.Name, "a")
		return wanted
	})
	if hash("a") != a {
		c.t.Error("the active site was updated before its role moved")
	}
	c.moveRole("b", 3)
	c.eventually("update of the former active site", func() bool { return hash("a") != a })
	c.settle("a")
	c.eventually("end of the update", func() bool {
		return slices.ContainsFunc(c.group().Status.Conditions, func(x metav1.Condition) bool {
			return x.Type == v1alpha1.ConditionProgressing && x.Reason == string(v1alpha1.ReasonAsExpected)
		})
	})
}

// moveRole does what a planned failover does.
func (c *cluster) moveRole(to string, epoch int64) {
	c.monitor(to, epoch)
	c.facts.Open(to)
	g, _ := c.facts.Sites("", "")
	for site, f := range g.Sites {
		f.Writable, f.Following = site == to, site != to
		c.facts.Set(site, f)
	}
	c.r.Wake(scopetest.Key)
}

// isQuiet checks that a settled group causes no writes, whatever the API server adds to what is applied.
func (c *cluster) isQuiet() {
	versions := func() map[string]string {
		out := map[string]string{"group": c.group().ResourceVersion}
		for name, obj := range map[string]client.Object{
			"mysql-orders-a": &appsv1.Deployment{}, "mysql-orders-primary": &corev1.Service{}, "mysql-orders-a-config": &corev1.ConfigMap{},
			"mysql-orders-a-data": &corev1.PersistentVolumeClaim{}, "mysql-orders-accounts": &corev1.Secret{},
		} {
			if err := c.get(obj, name); err != nil {
				c.t.Fatal(err)
			}
			out[name] = obj.GetResourceVersion()
		}
		return out
	}
	before := versions()
	for range 5 {
		c.r.Wake(scopetest.Key)
		time.Sleep(200 * time.Millisecond)
	}
	after := versions()
	for name := range before {
		if before[name] != after[name] {
			c.t.Errorf("%s was written although nothing changed", name)
		}
	}
}

func (c *cluster) changesOwners() {
	owners := func(want int) func() bool {
		return func() bool {
			var s corev1.Secret
			var v corev1.PersistentVolumeClaim
			if c.get(&s, "mysql-orders-accounts") != nil || c.get(&v, "mysql-orders-a-data") != nil {
				return false
			}
			for _, account := range passwords.Accounts {
				if len(s.Data[account]) == 0 {
					return false
				}
			}
			return len(s.OwnerReferences) == want && len(v.OwnerReferences) == want
		}
	}
	c.edit(deletePolicy)
	c.eventually("owners with Delete", owners(1))
	c.edit(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
	c.eventually("no owners with Retain", owners(0))
}

// seesNamespaceEnd tells, with the rights of the chart, whether a keyring could still come into escrow. No controller of namespaces runs
// here, so the one that is deleted stays as it is.
func (c *cluster) seesNamespaceEnd() {
	doomed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: doomed.Name, Name: scopetest.Key.Name}}
	c.create(doomed)
	if c.r.encryption.RefusesSecrets(c.t.Context(), group) {
		c.t.Error("a namespace that stays passes for one that is deleted")
	}
	if err := c.admin.Delete(c.t.Context(), doomed); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the namespace refuses Secrets", func() bool { return c.r.encryption.RefusesSecrets(c.t.Context(), group) })
	var made corev1.SecretList
	if err := c.admin.List(c.t.Context(), &made, client.InNamespace(doomed.Name)); err != nil || len(made.Items) > 0 {
		c.t.Errorf("asking made %d Secrets (%v)", len(made.Items), err)
	}
}

func (c *cluster) retains() {
	c.deleteGroup()
	for name, obj := range data() {
		if err := c.get(obj, name); err != nil || obj.GetDeletionTimestamp() != nil {
			c.t.Errorf("%s: %v, deleted %v", name, err, obj.GetDeletionTimestamp())
		}
	}
	c.eventually("event", func() bool {
		var list eventsv1.EventList
		if err := c.admin.List(c.t.Context(), &list, client.InNamespace(scopetest.Key.Namespace)); err != nil {
			c.t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == string(v1alpha1.ReasonGroupDataKept) })
	})
}

// goesOn makes the group again over what was kept, and then deletes it with everything.
func (c *cluster) goesOn() {
	before := &corev1.Secret{}
	if err := c.get(before, "mysql-orders-accounts"); err != nil {
		c.t.Fatal(err)
	}
	// No garbage collector runs here.
	for _, obj := range []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &policyv1.PodDisruptionBudget{}, &corev1.Pod{},
	} {
		err := c.admin.DeleteAllOf(c.t.Context(), obj, client.InNamespace(scopetest.Key.Namespace),
			client.MatchingLabels(render.GroupLabels(scopetest.Key.Name)), client.GracePeriodSeconds(0))
		if err != nil {
			c.t.Fatal(err)
		}
	}
	var secrets corev1.SecretList
	if err := c.admin.List(c.t.Context(), &secrets, client.InNamespace(scopetest.Key.Namespace)); err != nil {
		c.t.Fatal(err)
	}
	for i := range secrets.Items {
		if strings.HasSuffix(secrets.Items[i].Name, "-report") { // it belongs to the group that is gone
			if err := c.admin.Delete(c.t.Context(), &secrets.Items[i]); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	c.createGroup()
	after := &corev1.Secret{}
	if err := c.get(after, "mysql-orders-accounts"); err != nil || !maps.EqualFunc(before.Data, after.Data, bytes.Equal) {
		c.t.Errorf("the passwords of the kept data are gone: %v", err)
	}
	c.edit(deletePolicy)
	c.deleteGroup()
	for name, obj := range data() {
		if err := c.get(obj, name); !apierrors.IsNotFound(err) && obj.GetDeletionTimestamp() == nil {
			c.t.Errorf("%s is still there: %v", name, err)
		}
	}
}
