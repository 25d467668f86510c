// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

var key = types.NamespacedName{Namespace: "shop", Name: "orders"}

// cacheModel is one engine.
type cacheModel struct {
	mu   sync.Mutex
	info engine.Info
	// fails is what every command fails with, hangs has it answer nothing.
	fails error
	hangs bool
	said  []string
	// stale has it show an old certificate, until it is told to read the new one if it can.
	stale, stubborn bool
	// deaf has its port take no connections.
	deaf        bool
	certificate []byte
}

func (c *cacheModel) do(ctx context.Context, what string, change func(*engine.Info)) error {
	c.mu.Lock()
	hangs := c.hangs
	c.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails != nil {
		return c.fails
	}
	if what != "" {
		c.said = append(c.said, what)
	}
	change(&c.info)
	return nil
}

func (c *cacheModel) Info(ctx context.Context) (out engine.Info, err error) {
	err = c.do(ctx, "", func(i *engine.Info) { out = *i })
	return out, err
}

func (c *cacheModel) Follow(ctx context.Context, host string, _ int) error {
	return c.do(ctx, "follow "+host, func(i *engine.Info) { i.Role, i.MasterHost, i.LinkUp = v1alpha1.CacheReplica, host, true })
}

func (c *cacheModel) Promote(ctx context.Context) error {
	return c.do(ctx, "promote", func(i *engine.Info) { i.Role, i.MasterHost, i.LinkUp = v1alpha1.CacheMaster, "", false })
}

func (c *cacheModel) CutClients(ctx context.Context) error {
	return c.do(ctx, "cut", func(*engine.Info) {})
}

func (c *cacheModel) Close() {}

func (c *cacheModel) Stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stale
}

func (c *cacheModel) Listens(context.Context) bool { return !c.deaf }

func (c *cacheModel) Renew(ctx context.Context) error {
	return c.do(ctx, "renew", func(*engine.Info) { c.stale = c.stubborn })
}

// world is an API server with a group of two sites, and their caches.
type world struct {
	t     *testing.T
	c     client.WithWatch
	loops *Loops
	// troubles are given to the loops unless nil.
	troubles *troubles
	l        *loop
	engines  map[string]*cacheModel
	// refuse fails a write, by what it writes.
	refuse func(what string) error
	order  []string
	// tries counts connections through the Service; those before late reach east.
	tries, late int
	// silent has nobody answer through the Service.
	silent bool
}

// troubles are what a person has to settle; nil while nobody has looked.
type troubles struct {
	mu    sync.Mutex
	found *[2]string
}

func (t *troubles) Known(types.NamespacedName) (v1alpha1.Reason, string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.found == nil {
		return "", "", false
	}
	return v1alpha1.Reason(t.found[0]), t.found[1], true
}

func (t *troubles) say(reason v1alpha1.Reason, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = &[2]string{string(reason), message}
}

type access struct{}

func (access) Cache(context.Context, *v1alpha1.MysqlFailoverGroup, string) ([]string, *tls.Config, error) {
	return []string{"secret"}, nil, nil
}

func (access) CacheCertificate(context.Context, *v1alpha1.MysqlFailoverGroup) ([]byte, error) {
	return []byte("certificate"), nil
}

func newWorld(t *testing.T, change func(*v1alpha1.MysqlFailoverGroup)) *world {
	t.Helper()
	w := &world{t: t, engines: map[string]*cacheModel{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u"}}
	group.Spec.Sites = []v1alpha1.Site{{Name: "east"}, {Name: "west"}}
	group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Engine: v1alpha1.CacheValkey}
	group.Status.ActiveSite, group.Status.Epoch = "east", 3
	if change != nil {
		change(group)
	}
	objects := []client.Object{group, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: v1alpha1.CacheService(key.Name)},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7"}}}
	for i, site := range []string{"east", "west"} {
		ip := "10.0.0." + string(rune('1'+i))
		objects = append(objects, cachePod(site, ip))
		w.engines[ip+":6379"] = &cacheModel{info: engine.Info{Run: site, Role: v1alpha1.CacheMaster}}
	}
	w.c = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(group).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, indexCache, indexed).
		WithTypeConverters(applyconfiguration.NewTypeConverter(scheme), managedfields.NewDeducedTypeConverter()).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				what := "label " + obj.GetName()
				if _, is := obj.(*corev1.Service); is {
					what = "route"
				}
				if err := w.wrote(what); err != nil {
					return err
				}
				return c.Patch(ctx, obj, patch, opts...)
			},
			SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
				if err := w.wrote("status"); err != nil {
					return err
				}
				return c.SubResource(sub).Apply(ctx, obj, opts...)
			},
		}).Build()
	w.restart()
	return w
}

// restart has another operator look after the group.
func (w *world) restart() {
	w.loops = New(Options{Client: w.c, Live: w.c, Access: access{}, Log: slog.New(slog.DiscardHandler), Lease: "mfg/ours",
		Dial: func(t engine.Target) Engine {
			if t.Addr == "10.96.0.7:6379" {
				return w.through()
			}
			if e := w.engines[t.Addr]; e != nil {
				e.certificate = t.Certificate
			}
			return w.engines[t.Addr]
		},
		TakeOver: func(ctx context.Context, from, to Engine) error {
			old, next := from.(*cacheModel), to.(*cacheModel)
			w.order = append(w.order, "take over")
			if err := next.do(ctx, "take over", func(i *engine.Info) { i.Role = v1alpha1.CacheMaster }); err != nil {
				return err
			}
			return old.do(ctx, "handed over", func(i *engine.Info) { i.Role, i.MasterHost, i.LinkUp = v1alpha1.CacheReplica, w.hostOf(next), true })
		}})
	if w.troubles != nil {
		w.loops.Troubles = w.troubles
	}
	w.l = newLoop(w.loops, key, func() {})
}

// through is the engine that a connection through the Service reaches: that of the site which it named a few tries ago.
func (w *world) through() Engine {
	w.tries++
	w.order = append(w.order, "try")
	site := w.selector()[v1alpha1.LabelSite]
	if w.tries < w.late || site == "" {
		site = "east"
	}
	return &cacheModel{info: w.engine(site).info, hangs: w.silent}
}

// address gives the Service another address.
func (w *world) address(ip string) {
	w.t.Helper()
	s := &corev1.Service{}
	if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: v1alpha1.CacheService(key.Name)}, s); err != nil {
		w.t.Fatal(err)
	}
	s.Spec.ClusterIP = ip
	if err := w.c.Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// planned has the role of MySQL be moved to west by plan, and be at rest there.
func (w *world) planned() {
	w.l.told.Store(&cache.MySQL{Active: "west", Epoch: 4, Kind: v1alpha1.FailoverPlanned})
	w.l.memory.StillSince, w.l.memory.StillEpoch = time.Now().Add(-time.Minute), 4
}

// selector is that of the Service for applications.
func (w *world) selector() map[string]string {
	w.t.Helper()
	s := &corev1.Service{}
	if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: v1alpha1.CacheService(key.Name)}, s); err != nil {
		w.t.Fatal(err)
	}
	return s.Spec.Selector
}

func (w *world) hostOf(c *cacheModel) string {
	for addr, e := range w.engines {
		if e == c {
			return addr[:len(addr)-len(":6379")]
		}
	}
	return ""
}

func (w *world) wrote(what string) error {
	w.order = append(w.order, what)
	if w.refuse != nil {
		return w.refuse(what)
	}
	return nil
}

func cachePod(site, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "orders-cache-" + site + "-0", UID: types.UID("pod-" + site),
			Labels: map[string]string{v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelGroup: key.Name, v1alpha1.LabelSite: site}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "cache", Image: "valkey:9"}}},
		Status: corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning},
	}
}

func (w *world) engine(site string) *cacheModel {
	if site == "east" {
		return w.engines["10.0.0.1:6379"]
	}
	return w.engines["10.0.0.2:6379"]
}

func (w *world) pod(site string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	if err := w.c.Get(w.t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "orders-cache-" + site + "-0"}, pod); err != nil {
		w.t.Fatal(err)
	}
	return pod
}

func (w *world) group() *v1alpha1.MysqlFailoverGroup {
	w.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.c.Get(w.t.Context(), key, g); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// traffic are the sites whose pods take traffic.
func (w *world) traffic() []string {
	w.t.Helper()
	var out []string
	var pods corev1.PodList
	if err := w.c.List(w.t.Context(), &pods, client.MatchingLabels{v1alpha1.LabelCacheRole: "master", v1alpha1.LabelCacheTraffic: "enabled"}); err != nil {
		w.t.Fatal(err)
	}
	for _, p := range pods.Items {
		out = append(out, p.Labels[v1alpha1.LabelSite])
	}
	return out
}

// passes looks so many times, without a wait between them.
func (w *world) passes(n int) {
	w.t.Helper()
	for range n {
		w.l.pass(w.t.Context())
	}
}

var errAway = errors.New("the API server is away")

const soon = 5 * time.Second
