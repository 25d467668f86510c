// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// well is a cluster in which nothing is wrong: each test spoils one thing.
func well() (World, []runtime.Object) {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	in := func(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	objects := []runtime.Object{
		&coordinationv1.Lease{ObjectMeta: in("mfg-system", "mfg-operator"), Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr("mfg-operator-1"), LeaseDurationSeconds: ptr(int32(15)), RenewTime: ptr(metav1.NewMicroTime(noon.Add(-2 * time.Second)))}},
		&policyv1.PodDisruptionBudget{ObjectMeta: in("shop", "mysql-orders"), Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2}},
		&policyv1.PodDisruptionBudget{ObjectMeta: in("shop", "mysql-orders-protected"), Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1}},
		&storagev1.StorageClass{ObjectMeta: in("", "fast"), AllowVolumeExpansion: ptr(true)},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-apiserver-1", Labels: map[string]string{"component": "kube-apiserver"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"kube-apiserver", "--encryption-provider-config=/etc/enc.yaml"}}}}},
		&rbacv1.ClusterRole{ObjectMeta: in("", "admin"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}},
		&rbacv1.ClusterRole{ObjectMeta: in("", "named"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"x"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "admins"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:masters"}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "named"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "named"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}},
	}
	for i, site := range []string{"paris", "rome"} {
		g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: site, Role: v1alpha1.PrimaryCandidate})
		node := []string{"worker-1", "worker-2"}[i]
		objects = append(objects,
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-" + site + "-x", Labels: map[string]string{
				v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: site}}, Spec: corev1.PodSpec{NodeName: node}},
			&corev1.Node{ObjectMeta: in("", node), Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				NodeInfo:   corev1.NodeSystemInfo{Swap: &corev1.NodeSwapStatus{Capacity: ptr(int64(0))}}}},
			&corev1.PersistentVolumeClaim{ObjectMeta: in("shop", v1alpha1.DataVolumeName("orders", site)), Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr("fast")}},
		)
	}
	return World{Group: g, OperatorNamespace: "mfg-system", Now: noon, Asked: noon, OperatorTime: noon, OperatorVersion: "v0.1.0",
		ServerTime: noon, Forecast: &report.Forecast{Site: "rome", Message: "rome would take over (OnlyCandidate)"}}, objects
}

// change replaces the object of a name.
func change[T runtime.Object](objects []runtime.Object, name string, with func(T)) {
	for _, o := range objects {
		meta, is := o.(metav1.Object)
		typed, same := o.(T)
		if is && same && meta.GetName() == name {
			with(typed)
		}
	}
}

// without drops the object of a name.
func without(objects []runtime.Object, name string) []runtime.Object {
	return slices.DeleteFunc(objects, func(o runtime.Object) bool {
		meta, is := o.(metav1.Object)
		return is && meta.GetName() == name
	})
}

func TestAllIsWell(t *testing.T) {
	w, objects := well()
	w.Kube = fake.NewClientset(objects...)
	found := Examine(t.Context(), w)
	if len(found) != len(checks)-4 { // escrow, certificate, cache and backups say nothing of a group without
		t.Errorf("%d findings of %d checks", len(found), len(checks))
	}
	for _, f := range found {
		if f.Level != OK || f.Message == "" || f.Remedy != "" {
			t.Errorf("%+v", f)
		}
	}
	if (Report{Findings: found}).Worst() != OK {
		t.Error("not well")
	}
}

// TestFindings spoils one thing at a time: exactly its check must say so, with a way out.
func TestFindings(t *testing.T) {
	tests := map[string]struct {
		spoil func(*World, []runtime.Object) []runtime.Object
		check string
		level Level
		says  string
	}{
		"OperatorDown": {func(w *World, o []runtime.Object) []runtime.Object {
			w.OperatorDown, w.OperatorMissing = true, "no pod"
			return o
		}, "operator", Fail, "no operator looks after"},
		"Claimed": {func(w *World, o []runtime.Object) []runtime.Object {
			w.Group.Status.Claim = &v1alpha1.GroupClaim{Lease: "mfg-blue/mfg-operator"}
			return o
		}, "leader", Warn, "mfg-blue/mfg-operator"},
		"NoLease": {func(_ *World, o []runtime.Object) []runtime.Object { return without(o, "mfg-operator") }, "leader", Fail, "no Lease"},
		"OldLease": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "mfg-operator", func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr(metav1.NewMicroTime(noon.Add(-time.Minute))) })
			return o
		}, "leader", Fail, "no operator leads"},
		"Paused": {func(w *World, o []runtime.Object) []runtime.Object {
			w.Group.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: noon.Add(time.Hour).Format(time.RFC3339)}
			return o
		}, "pause", Warn, "paused until"},
		"PausedByTheServersClock": {func(w *World, o []runtime.Object) []runtime.Object {
			w.Now, w.Asked, w.OperatorTime = noon.Add(2*time.Hour), noon.Add(2*time.Hour), noon // this machine is ahead
			w.Group.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: noon.Add(time.Hour).Format(time.RFC3339)}
			return o
		}, "pause", Warn, "paused until"},
		"PauseIsNoTime": {func(w *World, o []runtime.Object) []runtime.Object {
			w.Group.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: "tomorrow"}
			return o
		}, "pause", Fail, "is no time"},
		"Blocked": {func(w *World, o []runtime.Object) []runtime.Object { w.Forecast.BlockedBy = "Cooldown"; return o }, "failover", Warn, "Cooldown"},
		"Nobody":  {func(w *World, o []runtime.Object) []runtime.Object { w.Forecast.Site = ""; return o }, "failover", Fail, "no site would take over"},
		"Outage": {func(w *World, o []runtime.Object) []runtime.Object {
			w.Forecast, w.Problems = nil, []report.Problem{{Reason: "ActiveSiteSilent", Site: "paris", Message: "does not accept writes"}, {Reason: "SiteUnreachable"}}
			return o
		}, "failover", Fail, "the group is not healthy now: paris does not accept writes [ActiveSiteSilent]; 1 more"},
		"CannotWrite": {func(w *World, o []runtime.Object) []runtime.Object {
			w.Summary, w.Problems = report.SummaryUnavailable, []report.Problem{{Reason: "ActiveSiteReadOnly", Site: "paris", Message: "its volume is full"}}
			return o
		}, "failover", Fail, "the group is not healthy now: paris its volume is full [ActiveSiteReadOnly]"},
		"TwoWrite": {func(w *World, o []runtime.Object) []runtime.Object {
			w.Summary, w.Problems = report.SummarySplitBrain, []report.Problem{{Reason: "SeveralWritableSites", Message: "more than one site accepts writes"}}
			return o
		}, "failover", Fail, "more than one site accepts writes"},
		"OldForecast": {func(w *World, o []runtime.Object) []runtime.Object {
			w.Problems = []report.Problem{{Reason: "Stale", Message: "the operator last looked at this group 10m0s ago"}}
			return o
		}, "failover", Fail, "10m0s ago"},
		"OutageBegins": {func(w *World, o []runtime.Object) []runtime.Object { w.Forecast = nil; return o }, "failover", Fail, "not healthy now"},
		"OutageLastKnown": {func(w *World, o []runtime.Object) []runtime.Object {
			w.OperatorMissing, w.Forecast, w.Problems = "you may not", nil, []report.Problem{{Reason: "Degraded", Message: "nobody can write"}}
			return o
		}, "failover", Fail, "last known: the group is not healthy now: nobody can write"},
		"ForecastLastKnown": {func(w *World, o []runtime.Object) []runtime.Object {
			w.OperatorMissing = "you may not"
			return o
		}, "failover", OK, "last known: rome would take over"},
		"ForecastNotAsked": {func(w *World, o []runtime.Object) []runtime.Object {
			w.OperatorMissing, w.Forecast = "you may not", nil
			return o
		}, "failover", Unknown, "not asked"},
		"ForecastWithoutOperator": {func(w *World, o []runtime.Object) []runtime.Object {
			w.OperatorDown, w.OperatorMissing = true, "no pod"
			return o
		}, "failover", Unknown, "no operator looks after the group"},
		"SlowClock": {func(w *World, o []runtime.Object) []runtime.Object {
			w.OperatorTime = noon.Add(-5 * time.Second)
			return o
		}, "clocks", Warn, "5.5s"},
		"BadClock": {func(w *World, o []runtime.Object) []runtime.Object { w.OperatorTime = noon.Add(time.Minute); return o }, "clocks", Fail, "differ"},
		"NotReady": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "worker-1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
			return o
		}, "nodes", Fail, "worker-1 of site paris is not Ready"},
		"Cordoned": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "worker-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			return o
		}, "nodes", Warn, "cordoned"},
		"NoPod": {func(_ *World, o []runtime.Object) []runtime.Object { return without(o, "mysql-orders-rome-x") }, "nodes", Fail, "rome has no pod"},
		"EvictedPod": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "mysql-orders-rome-x", func(p *corev1.Pod) {
				evicted := p.DeepCopy()
				evicted.Name, evicted.Status.Phase = "mysql-orders-rome-a", corev1.PodFailed
				o = append(o, evicted)
				p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
			})
			return o
		}, "nodes", Fail, "rome has no pod"},
		"SameNode": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "mysql-orders-rome-x", func(p *corev1.Pod) { p.Spec.NodeName = "worker-1" })
			return o
		}, "spread", Fail, "paris and rome run on one node"},
		"Swap": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "worker-2", func(n *corev1.Node) { n.Status.NodeInfo.Swap.Capacity = ptr(int64(1 << 30)) })
			return o
		}, "swap", Warn, "worker-2"},
		"SwapUnknown": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "worker-2", func(n *corev1.Node) { n.Status.NodeInfo.Swap = nil })
			return o
		}, "swap", Unknown, "do not report"},
		"NoBudget": {func(_ *World, o []runtime.Object) []runtime.Object { return without(o, "mysql-orders-protected") }, "eviction", Fail, "no PodDisruptionBudget"},
		"FixedSize": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "fast", func(s *storagev1.StorageClass) { s.AllowVolumeExpansion = nil })
			return o
		}, "volumes", Warn, "cannot grow"},
		"NoVolume": {func(_ *World, o []runtime.Object) []runtime.Object { return without(o, "mysql-orders-rome-data") }, "volumes", Warn, "no PersistentVolumeClaim"},
		"Plain": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "kube-apiserver-1", func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"kube-apiserver"} })
			return o
		}, "secrets at rest", Fail, "in the clear"},
		"Managed": {func(_ *World, o []runtime.Object) []runtime.Object { return without(o, "kube-apiserver-1") }, "secrets at rest", Unknown, "cannot be seen"},
		"Everybody": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "admins", func(b *rbacv1.ClusterRoleBinding) {
				b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:shop"})
			})
			return o
		}, "who reads secrets", Fail, "every service account of namespace shop (group system:serviceaccounts:shop) can read Secrets"},
		"EverybodyByName": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "named", func(r *rbacv1.ClusterRole) { r.Rules[0].ResourceNames = []string{"mysql-orders-rome-keyring-v7"} })
			return o
		}, "who reads secrets", Fail, "every user and service account that logs in (group system:authenticated) can read Secrets"},
		"OneByName": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "named", func(r *rbacv1.ClusterRole) { r.Rules[0].ResourceNames = []string{"x", "mysql-orders-root"} })
			change(o, "named", func(b *rbacv1.ClusterRoleBinding) { b.Subjects = []rbacv1.Subject{{Kind: "User", Name: "jo"}} })
			return o
		}, "who reads secrets", OK, "1 more can read Secrets with passwords or keys of the group by name: user jo"},
		"Exec": {func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "named", func(r *rbacv1.ClusterRole) {
				r.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}}}
			})
			change(o, "named", func(b *rbacv1.ClusterRoleBinding) { b.Subjects = []rbacv1.Subject{{Kind: "User", Name: "jo"}} })
			return o
		}, "who reads secrets", OK, "sees what is mounted there: 1 can: user jo"},
	}
	named := func(names ...string) func(*World, []runtime.Object) []runtime.Object {
		return func(w *World, o []runtime.Object) []runtime.Object {
			w.Group.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"}
			change(o, "named", func(r *rbacv1.ClusterRole) { r.Rules[0].ResourceNames = names })
			return o
		}
	}
	may := func(subject rbacv1.Subject, group, kind, verb string) func(*World, []runtime.Object) []runtime.Object {
		return func(_ *World, o []runtime.Object) []runtime.Object {
			change(o, "named", func(r *rbacv1.ClusterRole) {
				r.Rules = []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{kind}, Verbs: []string{verb}}}
			})
			change(o, "named", func(b *rbacv1.ClusterRoleBinding) { b.Subjects = []rbacv1.Subject{subject} })
			return o
		}
	}
	type finding = struct {
		spoil func(*World, []runtime.Object) []runtime.Object
		check string
		level Level
		says  string
	}
	tests["EverybodyTLS"] = finding{named("orders-tls"), "who reads secrets", Fail, "every user and service account that logs in (group system:authenticated) can read Secrets"}
	tests["EverybodyOfSiteThatLeft"] = finding{named("mysql-orders-lisbon-keyring-v2"), "who reads secrets", Fail, "every user and service account that logs in (group system:authenticated) can read Secrets"}
	tests["OtherGroup"] = finding{named("mysql-stock-lisbon-keyring-v2", "other-tls"), "who reads secrets", OK, ""}
	everyone, jo := rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}, rbacv1.Subject{Kind: "User", Name: "jo"}
	for kind, verb := range map[string]string{"pods/exec": "create", "*/exec": "get", "pods/attach": "create", "pods/ephemeralcontainers": "patch", "pods": "create"} {
		tests["Everybody "+kind] = finding{may(everyone, "", kind, verb), "who reads secrets", Fail, "every user and service account that logs in (group system:authenticated) can make pods or run commands in them"}
		tests["One "+kind] = finding{may(jo, "", kind, verb), "who reads secrets", OK, "sees what is mounted there: 1 can: user jo"}
	}
	for kind, group := range map[string]string{"deployments": "apps", "statefulsets": "apps", "jobs": "batch", "cronjobs": "batch"} {
		tests["One "+kind] = finding{may(jo, group, kind, "create"), "who reads secrets", OK, "sees what is mounted there: 1 can: user jo"}
		tests["One reads "+kind] = finding{may(jo, group, kind, "get"), "who reads secrets", OK, "1 can read all"}
	}
	tests["EverybodyReadsKeys"] = finding{may(everyone, "", "secrets", "get"), "who reads keys", Fail, "every user and service account that logs in (group system:authenticated) can read the keys in mfg-system"}
	tests["EverybodyEntersTheOperator"] = finding{may(everyone, "", "pods/exec", "create"), "who reads keys", Fail, "every user and service account that logs in (group system:authenticated) can read the keys"}
	tests["AnonymousReadsKeys"] = finding{may(rbacv1.Subject{Kind: "Group", Name: "system:unauthenticated"}, "", "secrets", "get"), "who reads keys", Fail,
		"everyone who reaches the API server without logging in (group system:unauthenticated) can read the keys"}
	tests["OneEntersTheOperator"] = finding{may(jo, "", "pods", "create"), "who reads keys", OK, "2 can read the keys in mfg-system with which sites of every group are opened and fenced: group system:masters, user jo"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, objects := well()
			objects = tc.spoil(&w, objects)
			w.Kube = fake.NewClientset(objects...)
			hit := false
			for _, f := range Examine(t.Context(), w) {
				if f.Check != tc.check {
					// A right in the whole cluster is one in both namespaces.
					both := strings.HasPrefix(f.Check, "who reads ") && strings.HasPrefix(tc.check, "who reads ")
					if f.Level == Fail && name != "NoPod" && name != "SameNode" && !w.OperatorDown && !both {
						t.Errorf("another check fails too: %+v", f)
					}
					continue
				}
				hit = hit || f.Level == tc.level && strings.Contains(f.Message, tc.says)
				if f.Level != OK && f.Level != Unknown && f.Remedy == "" && name != "NoVolume" {
					t.Errorf("no way out: %+v", f)
				}
				if !hit {
					t.Errorf("%+v, want %s %q", f, tc.level, tc.says)
				}
			}
			if !hit {
				t.Error("not found")
			}
		})
	}
}

// TestRightsThatAreMissing: whoever may read the custom resource alone gets answers, none of them a judgement.
func TestRightsThatAreMissing(t *testing.T) {
	w, objects := well()
	kube := fake.NewClientset(objects...)
	kube.PrependReactor("*", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: a.GetResource().Resource}, "x", errors.New("no"))
	})
	w.Kube = kube
	unknown := 0
	for _, f := range Examine(t.Context(), w) {
		if f.Level == Fail || f.Level == Warn {
			t.Errorf("judged without having seen it: %+v", f)
		}
		if f.Level == Unknown {
			unknown++
			if f.Remedy == "" {
				t.Errorf("does not say which right is missing: %+v", f)
			}
		}
	}
	if unknown < 7 {
		t.Errorf("only %d unknown", unknown)
	}
}

func TestSecretsAreNeverRead(t *testing.T) {
	w, objects := well()
	kube := fake.NewClientset(objects...)
	w.Kube = kube
	Examine(t.Context(), w)
	for _, a := range kube.Actions() {
		if a.GetResource().Resource == "secrets" || a.GetVerb() != "get" && a.GetVerb() != "list" {
			t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
}
