// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/clone"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/signing"
	"github.com/mysql-mfg/mfg/operator/work"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// world is a Reconciler over a fake API server, with facts that the test makes up.
type world struct {
	t     *testing.T
	ctx   context.Context
	c     client.Client
	r     *Reconciler
	facts *scopetest.Facts
	loops *fakeLoops
	said  *scopetest.Events
	// fail makes every write of a kind fail.
	fail map[string]error
	// reject makes the apply of an object of a name fail, keep its deletion.
	reject, keep func(name string) error
	// drops has the API server know nothing of campaigns.
	drops bool
	// applies counts writes.
	writes int
}

func withTLS(g *v1alpha1.MysqlFailoverGroup) {
	g.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"}
}

func deletePolicy(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = v1alpha1.DeletionDelete }

// operatorNamespace is where the operator of the tests keeps its keys.
const operatorNamespace = "mfg-system"

func newWorld(t *testing.T, group *v1alpha1.MysqlFailoverGroup, others ...client.Object) *world {
	t.Helper()
	return worldOf(t, fake.NewClientBuilder(), group, others...)
}

// worldOf is a world whose API server is made by a builder.
func worldOf(t *testing.T, builder *fake.ClientBuilder, group *v1alpha1.MysqlFailoverGroup, others ...client.Object) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), facts: &scopetest.Facts{}, loops: &fakeLoops{}, said: &scopetest.Events{}, fail: map[string]error{}}
	scheme := newScheme(t)
	count := func(obj any) error {
		w.writes++
		return w.fail[fmt.Sprintf("%T", obj)]
	}
	made := builder.WithScheme(scheme).WithStatusSubresource(group).
		WithTypeConverters(applyconfiguration.NewTypeConverter(scheme), clientgoapply.NewTypeConverter(clientgoscheme.Scheme),
			managedfields.NewDeducedTypeConverter()).
		WithIndex(&corev1.Pod{}, v1alpha1.IndexGroup, indexed).WithIndex(&appsv1.Deployment{}, v1alpha1.IndexGroup, indexed).WithIndex(&corev1.Service{}, v1alpha1.IndexGroup, indexed).
		WithIndex(&appsv1.StatefulSet{}, v1alpha1.IndexCacheSets, indexedCache).
		WithObjects(append(others, group)...).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				if err := count(o); err != nil {
					return err
				}
				if named, ok := o.(interface{ GetName() string }); ok && w.reject != nil {
					if err := w.reject(named.GetName()); err != nil {
						return err
					}
				}
				return c.Apply(ctx, o, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if w.keep != nil {
					if err := w.keep(o.GetName()); err != nil {
						return err
					}
				}
				return c.Delete(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := count(o); err != nil {
					return err
				}
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := count(o); err != nil {
					return err
				}
				return c.SubResource(name).Patch(ctx, o, p, opts...)
			},
			SubResourceApply: func(ctx context.Context, c client.Client, name string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
				if err := count(o); err != nil {
					return err
				}
				err := c.SubResource(name).Apply(ctx, o, opts...)
				if g, is := o.(*applyv1alpha1.MysqlFailoverGroupApplyConfiguration); is && w.drops && g.Status.EncryptionAtRest != nil {
					g.Status.EncryptionAtRest.Campaign = nil
				}
				return err
			},
		}).Build()
	w.c = made
	w.r = New(Options{
		Client: interceptor.NewClient(made, fromCache()), Live: w.c, Facts: w.facts, Loops: w.loops, Work: work.New(), Recorder: events.NewRecorder(w.said),
		Keys:    &signing.Keys{Client: interceptor.NewClient(made, fromCache()), Live: w.c, Namespace: operatorNamespace},
		Install: render.Install{SidecarImage: "sidecar:test", OperatorURL: "http://operator"},
		Dial:    func(mysql.Target) (work.Recipient, error) { return nil, errors.New("nothing to dial in this test") },
	})
	return w
}

// runningWorld is a world whose group has run.
func runningWorld(t *testing.T) *world {
	t.Helper()
	in := render.Input{Group: scopetest.Group()}
	accounts := render.AccountsSecret(in, render.Passwords{Operator: "o", Replication: "r", Sidecar: "s", Clone: "c"})
	w := newWorld(t, scopetest.Group(), accounts, render.RootSecret(in, "p"))
	status := applyv1alpha1.MysqlFailoverGroupStatus()
	for _, s := range scopetest.Group(scopetest.Running).Status.Sites {
		status.WithSites(siteApply(s))
	}
	config := applyv1alpha1.MysqlFailoverGroup(scopetest.Key.Name, scopetest.Key.Namespace).WithStatus(status)
	w.must(w.c.Status().Apply(w.ctx, config, client.FieldOwner(v1alpha1.ManagerControllerStatus), client.ForceOwnership))
	w.monitorStatus("a", 1)
	return w
}

func (w *world) reconcile() time.Duration {
	w.t.Helper()
	result, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
	if err != nil {
		w.t.Fatalf("reconcile: %v", err)
	}
	if result.RequeueAfter > scope.WhenOvertaken && (result.Priority == nil || *result.Priority != afterAll) {
		w.t.Errorf("a look that only the clock asks for comes before new groups: %+v", result)
	}
	return result.RequeueAfter
}

// mayClone has the group's sites be cloned over servers of the test, by a part that remembers nothing.
func (w *world) mayClone() {
	w.r.clones = clone.New(w.r.base, clone.Options{
		Work: w.r.Work, Runner: w.r.runner, Wake: w.r.Wake, Paused: w.r.pausedUntil,
		Reach: work.Reach{Facts: w.facts, Access: worktest.Access{}, Dial: w.r.Dial},
	})
}

const (
	uuidOfA = "aaaaaaaa-0000-0000-0000-000000000001"
	uuidOfB = "bbbbbbbb-0000-0000-0000-000000000002"
)

func sets(text string) gtid.Set { return gtid.MustParse(text) }

// waitedSince has something been waited for since a moment.
func (w *world) waitedSince(began time.Time, what string) {
	s := &scope.Scope{Key: scopetest.Key, Now: began}
	w.r.base.Waits.Over(s, what)
	w.r.base.Waits.SinceFirst(s, what)
}

func (w *world) group() *v1alpha1.MysqlFailoverGroup {
	w.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	w.get(g, scopetest.Key.Name)
	return g
}

func (w *world) get(obj client.Object, name string) {
	w.t.Helper()
	if err := w.c.Get(w.ctx, types.NamespacedName{Namespace: scopetest.Key.Namespace, Name: name}, obj); err != nil {
		w.t.Fatalf("get %T %s: %v", obj, name, err)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// change edits the group as a user does.
func (w *world) change(edit scopetest.Option) {
	w.t.Helper()
	g := w.group()
	edit(g)
	g.Generation++
	w.must(w.c.Update(w.ctx, g))
}

// monitorStatus applies what the poll loop writes, as it does.
func (w *world) monitorStatus(active string, epoch int64) {
	w.t.Helper()
	status := applyv1alpha1.MysqlFailoverGroupStatus().WithActiveSite(active).WithEpoch(epoch)
	for _, s := range w.group().Spec.Sites {
		status.WithSites(applyv1alpha1.SiteStatus().WithName(s.Name).WithState(v1alpha1.SiteReplica))
	}
	config := applyv1alpha1.MysqlFailoverGroup(scopetest.Key.Name, scopetest.Key.Namespace).WithStatus(status)
	w.must(w.c.Status().Apply(w.ctx, config, client.FieldOwner(v1alpha1.ManagerMonitorStatus), client.ForceOwnership))
}

func (w *world) condition(kind string) conditions.Condition {
	w.t.Helper()
	for _, c := range w.group().Status.Conditions {
		if c.Type == kind {
			return conditions.Condition{Type: c.Type, Status: c.Status, Reason: v1alpha1.Reason(c.Reason), Message: c.Message}
		}
	}
	return conditions.Condition{}
}

func (w *world) deployments() map[string]string {
	w.t.Helper()
	var list appsv1.DeploymentList
	w.must(w.c.List(w.ctx, &list, client.InNamespace(scopetest.Key.Namespace)))
	out := map[string]string{}
	for _, d := range list.Items {
		out[d.Labels[v1alpha1.LabelSite]] = d.Annotations[v1alpha1.AnnotationSpecHash]
	}
	return out
}

// settle does what kubelet, mysqld and the poll loop do after a Deployment was made or changed.
func (w *world) settle(sites ...string) {
	w.t.Helper()
	for _, site := range sites {
		var d appsv1.Deployment
		w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, site))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: scopetest.Key.Namespace, Name: d.Name + "-" + d.Annotations[v1alpha1.AnnotationSpecHash],
			UID:    types.UID("pod-" + site + d.Annotations[v1alpha1.AnnotationSpecHash]),
			Labels: d.Spec.Template.Labels, Annotations: d.Spec.Template.Annotations,
		}, Spec: *d.Spec.Template.Spec.DeepCopy()}
		pod.Spec.NodeName = "node-" + site
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: render.ContainerSidecar, Started: new(true)}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels(site)...))
		w.must(w.c.Create(w.ctx, pod))
		w.facts.Set(site, scope.SiteFacts{
			Reachable: true, MysqlUp: true, Writable: site == w.group().Status.ActiveSite, Version: "9.7.4",
			Following: site != w.group().Status.ActiveSite, AdminAddr: "10.0.0.1:33062", PodName: pod.Name, PodUID: string(pod.UID),
		})
	}
}

func siteLabels(site string) []client.DeleteAllOfOption {
	return []client.DeleteAllOfOption{client.InNamespace(scopetest.Key.Namespace), client.MatchingLabels{v1alpha1.LabelSite: site}}
}

// site is what status says of a site.
func (w *world) site(name string) v1alpha1.SiteStatus {
	w.t.Helper()
	for _, s := range w.group().Status.Sites {
		if s.Name == name {
			return s
		}
	}
	return v1alpha1.SiteStatus{}
}

type fakeLoops struct {
	ensured, forgotten int
	// ending is true while a forgotten loop still runs.
	ending bool
}

func (l *fakeLoops) Ensure(types.NamespacedName) { l.ensured++ }
func (l *fakeLoops) Forget(types.NamespacedName) { l.forgotten++ }

func (l *fakeLoops) Ended(types.NamespacedName) bool { return !l.ending }
