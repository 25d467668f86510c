// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// TestPodProtectionOnAPIServer: the policies keep nobody from making and changing the pods of a site whose work it is, with an account for
// each controller and with one for all; everybody else is refused, whatever rights they have.
func TestPodProtectionOnAPIServer(t *testing.T) {
	for name, own := range map[string]bool{"an account for each controller": true, "one account for all controllers": false} {
		t.Run(name, func(t *testing.T) {
			l := startLocked(t, own)
			l.lives()
			l.refuses()
			l.audits()
		})
	}
}

// refused is true for what one of the policies refused, and for nothing else.
func refused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'mfg-operator-mfg-system-")
}

func aPod(labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, GenerateName: "some-", Labels: maps.Clone(labels)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "mysql", Image: "evil/mysql:9.7"}}},
	}
}

// aTemplate is one of pods with labels that a selector finds by their site.
func aTemplate(labels map[string]string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels = maps.Clone(labels)
	labels["app"] = "some"
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "some"}},
		corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: aPod(nil).Spec}
}

func aDeployment(own, labels map[string]string) *appsv1.Deployment {
	selector, template := aTemplate(labels)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, GenerateName: "some-", Labels: own},
		Spec:       appsv1.DeploymentSpec{Selector: selector, Template: template},
	}
}

func aReplicaSet(own, labels map[string]string) *appsv1.ReplicaSet {
	selector, template := aTemplate(labels)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, GenerateName: "some-", Labels: own},
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}
}

func aStatefulSet(own, labels map[string]string) *appsv1.StatefulSet {
	selector, template := aTemplate(labels)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, GenerateName: "some-", Labels: own},
		Spec:       appsv1.StatefulSetSpec{Selector: selector, Template: template},
	}
}

// ownedBy names an owner, as anybody may in what they create.
func ownedBy[T client.Object](obj T, owner client.Object, kind string) T {
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true)}})
	return obj
}

// siteInput is a group whose objects are made by hand here: the operator itself does not run.
func siteInput() render.Input {
	group := scopetest.Group(func(*v1alpha1.MysqlFailoverGroup) {})
	return render.Input{Group: group, Install: render.Install{SidecarImage: "sidecar:test", OperatorURL: "http://operator"}}
}

// site gives what there is of site a.
func (l *locked) site() (d appsv1.Deployment, sets []appsv1.ReplicaSet, pods []corev1.Pod) {
	l.t.Helper()
	labels := client.MatchingLabels(render.SiteLabels(scopetest.Key.Name, "a"))
	var allSets appsv1.ReplicaSetList
	var allPods corev1.PodList
	for _, list := range []client.ObjectList{&allSets, &allPods} {
		if err := l.admin.List(l.t.Context(), list, client.InNamespace(scopetest.Key.Namespace), labels); err != nil {
			l.t.Fatal(err)
		}
	}
	err := l.admin.Get(l.t.Context(), client.ObjectKey{Namespace: scopetest.Key.Namespace, Name: v1alpha1.SiteName(scopetest.Key.Name, "a")}, &d)
	if client.IgnoreNotFound(err) != nil {
		l.t.Fatal(err)
	}
	return d, allSets.Items, allPods.Items
}

// running waits for the one pod of a site that is not the one that was there before.
func (l *locked) running(what string, before corev1.Pod) corev1.Pod {
	l.t.Helper()
	var pod corev1.Pod
	l.eventually(what, func() bool {
		_, _, pods := l.site()
		if len(pods) != 1 || pods[0].UID == before.UID || pods[0].DeletionTimestamp != nil {
			return false
		}
		pod = pods[0]
		return true
	})
	return pod
}

// lives goes through all that happens to the pod of a site, under the policies.
func (l *locked) lives() {
	t, ctx := l.t, l.t.Context()
	operator, kubelet := l.as(operatorAccount), l.as(kubeletAccount)
	in := siteInput()
	deployment := render.Deployment(in, in.Group.Spec.Sites[0])
	deployment.OwnerReferences = nil // there is no group here
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	must("the operator makes a Deployment", operator.Create(ctx, deployment.DeepCopy()))
	pod := l.running("the controllers make the pod", corev1.Pod{})

	before := pod.DeepCopy()
	pod.Labels[v1alpha1.LabelRole], pod.Labels[v1alpha1.LabelHealthy] = v1alpha1.RolePrimary, v1alpha1.HealthyYes
	must("the operator labels the pod", operator.Patch(ctx, &pod, client.MergeFrom(before)))
	before = pod.DeepCopy()
	pod.Status.Phase, pod.Status.Message = corev1.PodPending, "pulling"
	must("the kubelet tells the status", kubelet.Status().Patch(ctx, &pod, client.MergeFrom(before)))
	before = pod.DeepCopy()
	pod.Annotations, pod.Labels["example.com/seen"] = map[string]string{"example.com/address": "10.0.0.1"}, "yes"
	must("others mark the pod", l.as(tenantAccount).Patch(ctx, &pod, client.MergeFrom(before)))

	d, _, _ := l.site()
	unchanged := d.DeepCopy()
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(77))
	must("the operator changes the template", operator.Patch(ctx, &d, client.MergeFrom(unchanged)))
	pod = l.running("the controllers replace the pod", pod)

	must("somebody deletes the pod", l.as(tenantAccount).Delete(ctx, &pod, client.GracePeriodSeconds(0)))
	pod = l.running("the controllers make another one", pod)

	// The garbage collector takes the owner off the ReplicaSets and finalizers off the Deployment; the next Deployment adopts them.
	must("the Deployment goes and leaves its pod", operator.Delete(ctx, &d, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	l.eventually("nobody owns the ReplicaSets", func() bool {
		d, sets, _ := l.site()
		return d.UID == "" && len(sets) > 0 && !slices.ContainsFunc(sets, func(s appsv1.ReplicaSet) bool { return len(s.OwnerReferences) > 0 })
	})
	next := deployment.DeepCopy()
	next.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(77))
	must("the operator makes it again", operator.Create(ctx, next))
	l.eventually("it has the pod of before", func() bool {
		d, sets, pods := l.site()
		return len(pods) == 1 && pods[0].UID == pod.UID && slices.ContainsFunc(sets, func(s appsv1.ReplicaSet) bool { return metav1.IsControlledBy(&s, &d) })
	})
	d, _, _ = l.site()
	must("the Deployment goes with all it has", operator.Delete(ctx, &d, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	l.eventually("nothing is left", func() bool {
		d, sets, pods := l.site()
		for _, pod := range pods {
			_ = l.admin.Delete(ctx, &pod, client.GracePeriodSeconds(0)) // there is no kubelet that would end it
		}
		return d.UID == "" && len(sets) == 0 && len(pods) == 0
	})
	must("a Deployment once more", operator.Create(ctx, deployment.DeepCopy()))
	l.running("its pod", pod)
}

// refuses asks for all that makes a pod that looks like one of a site.
func (l *locked) refuses() {
	d, sets, pods := l.site()
	set, pod := &sets[0], &pods[0]
	labels, none := render.SiteLabels(scopetest.Key.Name, "b"), map[string]string{}
	group := map[string]string{v1alpha1.LabelGroup: scopetest.Key.Name}
	cached := render.CacheSiteLabels(scopetest.Key.Name, "b")
	own := aPod(none)
	l.create(own)
	tests := []struct {
		what, user string
		obj        client.Object
		allowed    bool
	}{
		{"a pod", tenantAccount, aPod(labels), false},
		{"a pod by an administrator", "", aPod(labels), false},
		{"a pod with the one label that Services select by", tenantAccount, aPod(group), false},
		{"a pod that names the ReplicaSet of a site as its owner", tenantAccount, ownedBy(aPod(labels), set, "ReplicaSet"), false},
		{"a pod by the operator's kubelet", kubeletAccount, aPod(labels), false},
		{"a pod of something else by the controller of all", managerAccount, ownedBy(aPod(labels), &d, "StatefulSet"), false},
		{"a pod of nobody by the controller of all", managerAccount, aPod(labels), false},
		{"a pod of a ReplicaSet by the controller of all", managerAccount, ownedBy(aPod(labels), set, "ReplicaSet"), true},
		{"a pod of a ReplicaSet by its controller", replicaSetAccount, ownedBy(aPod(labels), set, "ReplicaSet"), true},
		{"a pod of a ReplicaSet by another controller", deploymentAccount, ownedBy(aPod(labels), set, "ReplicaSet"), false},
		{"a pod without labels", tenantAccount, aPod(none), true},

		{"a ReplicaSet", tenantAccount, aReplicaSet(labels, labels), false},
		{"a ReplicaSet without labels of its own", tenantAccount, aReplicaSet(none, labels), false},
		{"a ReplicaSet that names a Deployment", tenantAccount, ownedBy(aReplicaSet(none, labels), &d, "Deployment"), false},
		{"a ReplicaSet of nobody by the controller of all", managerAccount, aReplicaSet(labels, labels), false},
		{"a ReplicaSet of a Deployment by the controller of all", managerAccount, ownedBy(aReplicaSet(labels, labels), &d, "Deployment"), true},
		{"a ReplicaSet of a Deployment by its controller", deploymentAccount, ownedBy(aReplicaSet(labels, labels), &d, "Deployment"), true},
		{"a ReplicaSet of a Deployment by another controller", replicaSetAccount, ownedBy(aReplicaSet(labels, labels), &d, "Deployment"), false},
		{"a ReplicaSet without labels", tenantAccount, aReplicaSet(none, none), true},

		{"a Deployment", tenantAccount, aDeployment(labels, labels), false},
		{"a Deployment without labels of its own", tenantAccount, aDeployment(none, labels), false},
		{"a Deployment with labels of its own alone", tenantAccount, aDeployment(labels, none), false},
		{"a Deployment that names another one", tenantAccount, ownedBy(aDeployment(none, labels), &d, "Deployment"), false},
		{"a Deployment by the controller of all", managerAccount, ownedBy(aDeployment(none, labels), &d, "Deployment"), false},
		{"a Deployment by the operator", operatorAccount, aDeployment(labels, labels), true},
		{"a Deployment without labels", tenantAccount, aDeployment(none, none), true},

		{"a StatefulSet", tenantAccount, aStatefulSet(cached, cached), false},
		{"a StatefulSet without labels of its own", tenantAccount, aStatefulSet(none, cached), false},
		{"a StatefulSet by the controller of all", managerAccount, aStatefulSet(cached, cached), false},
		{"a StatefulSet by the operator", operatorAccount, aStatefulSet(cached, cached), true},
		{"a StatefulSet without labels", tenantAccount, aStatefulSet(none, none), true},
		{"a cache pod of a StatefulSet by the controller of all", managerAccount, ownedBy(aPod(cached), &d, "StatefulSet"), true},
		{"a cache pod of a StatefulSet by its controller", "system:serviceaccount:kube-system:statefulset-controller", ownedBy(aPod(cached), &d, "StatefulSet"), true},
		{"a cache pod of a StatefulSet by another controller", replicaSetAccount, ownedBy(aPod(cached), &d, "StatefulSet"), false},
		{"a cache pod of a StatefulSet by somebody", tenantAccount, ownedBy(aPod(cached), &d, "StatefulSet"), false},
		{"a cache pod of nobody by the controller of all", managerAccount, aPod(cached), false},
	}
	for _, tc := range tests {
		l.check(tc.what, tc.allowed, l.as(tc.user).Create(l.t.Context(), tc.obj, client.DryRunAll))
	}
	l.refusesChanges(&d, set, pod, own)
}

// refusesChanges asks for all that makes a pod of a site another one's, or out of another pod one of a site.
func (l *locked) refusesChanges(d *appsv1.Deployment, set *appsv1.ReplicaSet, pod, own *corev1.Pod) {
	tenant := l.as(tenantAccount)
	template := func(s *corev1.PodTemplateSpec) { s.Spec.Containers[0].Image = "evil/mysql:9.7" }
	relabel := func(o client.Object) { o.SetLabels(render.SiteLabels(scopetest.Key.Name, "b")) }
	tests := []struct {
		what    string
		obj     client.Object
		change  func(client.Object)
		allowed bool
	}{
		{"another pod is labelled", own, relabel, false},
		{"another pod is labelled otherwise", own, func(o client.Object) { o.SetLabels(map[string]string{"app": "x"}) }, true},
		{"all labels are taken off", pod, func(o client.Object) { o.SetLabels(nil) }, false},
		{"it is given to another site", pod, relabel, false},
		{"another image", pod, func(o client.Object) { o.(*corev1.Pod).Spec.Containers[0].Image = "evil/mysql:9.7" }, false},
		{"another image of what runs before", pod, func(o client.Object) { o.(*corev1.Pod).Spec.InitContainers[0].Image = "evil/mysql:9.7" }, false},
		{"the template of a ReplicaSet", set, func(o client.Object) { template(&o.(*appsv1.ReplicaSet).Spec.Template) }, false},
		{"the labels of a ReplicaSet", set, relabel, false},
		{"an annotation of a ReplicaSet", set, func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, true},
		{"the template of a Deployment", d, func(o client.Object) { template(&o.(*appsv1.Deployment).Spec.Template) }, false},
		{"the labels of a Deployment", d, func(o client.Object) { o.SetLabels(nil) }, false},
		{"an annotation of a Deployment", d, func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, true},
	}
	for _, tc := range tests {
		obj := tc.obj.DeepCopyObject().(client.Object)
		tc.change(obj)
		l.check(tc.what, tc.allowed, tenant.Patch(l.t.Context(), obj, client.MergeFrom(tc.obj), client.DryRunAll))
	}
	status := own.DeepCopy()
	relabel(status)
	l.check("another pod is labelled through its status", false, tenant.Status().Patch(l.t.Context(), status, client.MergeFrom(own), client.DryRunAll))
	for _, key := range selected() {
		changed := pod.DeepCopy()
		changed.Labels[key] = "another"
		l.check("label "+key, false, tenant.Patch(l.t.Context(), changed, client.MergeFrom(pod), client.DryRunAll))
		l.check("label "+key+", by the operator", true, l.as(operatorAccount).Patch(l.t.Context(), changed, client.MergeFrom(pod), client.DryRunAll))
	}
}

// audits does what docs/install.md says of trying the policies: what would be refused passes, and is counted.
func (l *locked) audits() {
	for _, name := range []string{"mfg-operator-mfg-system-pods", "mfg-operator-mfg-system-templates"} {
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"validationActions":["Audit"]}}`))
		if err := l.admin.Patch(l.t.Context(), binding, patch); err != nil {
			l.t.Fatal(err)
		}
	}
	labels := render.SiteLabels(scopetest.Key.Name, "b")
	l.eventually("nothing is refused", func() bool {
		return l.admin.Create(l.t.Context(), aPod(labels), client.DryRunAll) == nil &&
			l.admin.Create(l.t.Context(), aDeployment(labels, labels), client.DryRunAll) == nil
	})
	api, err := rest.HTTPClientFor(l.config)
	if err != nil {
		l.t.Fatal(err)
	}
	ask, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, strings.TrimSuffix(l.config.Host, "/")+"/metrics", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	answer, err := api.Do(ask)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	metrics, err := io.ReadAll(answer.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, name := range []string{"mfg-operator-mfg-system-pods", "mfg-operator-mfg-system-templates"} {
		if !slices.ContainsFunc(strings.Split(string(metrics), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "apiserver_validating_admission_policy_check_total{") &&
				strings.Contains(line, `enforcement_action="audit"`) && strings.Contains(line, name)
		}) {
			l.t.Errorf("no metric tells what %s would have refused", name)
		}
	}
}

// selected are the labels by which pods are found: what Services and budgets of a group select.
func selected() []string {
	in := siteInput()
	keys := map[string]string{}
	for _, service := range []*corev1.Service{render.SiteService(in, in.Group.Spec.Sites[0]), render.PrimaryService(in), render.ReplicasService(in)} {
		maps.Copy(keys, service.Spec.Selector)
	}
	maps.Copy(keys, render.DisruptionBudget(in).Spec.Selector.MatchLabels)
	protection := render.Protection(in).Spec.Selector
	maps.Copy(keys, protection.MatchLabels)
	for _, e := range protection.MatchExpressions {
		keys[e.Key] = ""
	}
	maps.Copy(keys, render.Deployment(in, in.Group.Spec.Sites[0]).Spec.Selector.MatchLabels)
	return slices.Sorted(maps.Keys(keys))
}

func (l *locked) check(what string, allowed bool, err error) {
	l.t.Helper()
	switch {
	case allowed && err != nil:
		l.t.Errorf("%s: %v", what, err)
	case !allowed && !refused(err):
		l.t.Errorf("%s is not refused by a policy: %v", what, err)
	}
}
