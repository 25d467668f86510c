// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// endpointWatch notes every set of endpoints that Services have had, in order.
type endpointWatch struct {
	stop func()
	done sync.WaitGroup

	mu     sync.Mutex
	slices map[string]discoveryv1.EndpointSlice
	said   map[string][]string
	failed error
}

// watchEndpoints begins to note those of some Services of a group. It sees each change that the API server has, however short.
func watchEndpoints(t *testing.T, g *stage.Group, services ...string) *endpointWatch {
	t.Helper()
	selector := fmt.Sprintf("%s in (%s)", discoveryv1.LabelServiceName, strings.Join(services, ","))
	api := g.Core.DiscoveryV1().EndpointSlices(g.Namespace)
	ctx, cancel := context.WithCancel(context.Background())
	list, err := api.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	changes, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: list.ResourceVersion})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	w := &endpointWatch{slices: map[string]discoveryv1.EndpointSlice{}, said: map[string][]string{}}
	w.stop = sync.OnceFunc(func() {
		cancel()
		changes.Stop()
		w.done.Wait()
	})
	t.Cleanup(w.stop)
	for _, s := range list.Items {
		w.slices[s.Name] = s
	}
	for _, service := range services {
		w.note(service)
	}
	w.done.Go(func() {
		for change := range changes.ResultChan() {
			if ctx.Err() != nil {
				return // end was called: the watch may end in an error
			}
			w.take(change)
		}
		if ctx.Err() == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed = errors.New("the watch of the endpoints ended early, and this test saw only a part")
		}
	})
	return w
}

func (w *endpointWatch) take(change watch.Event) {
	s, is := change.Object.(*discoveryv1.EndpointSlice)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !is:
		w.failed = fmt.Errorf("watch endpoints: %+v", change.Object)
		return
	case change.Type == watch.Deleted:
		delete(w.slices, s.Name)
	default:
		w.slices[s.Name] = *s
	}
	w.note(s.Labels[discoveryv1.LabelServiceName])
}

// note appends the endpoints that take traffic now, if they are others than before.
func (w *endpointWatch) note(service string) {
	var names []string
	for _, s := range w.slices {
		if s.Labels[discoveryv1.LabelServiceName] != service {
			continue
		}
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready && e.TargetRef != nil {
				names = append(names, e.TargetRef.Name)
			}
		}
	}
	slices.Sort(names)
	now := strings.Join(names, " ")
	if said := w.said[service]; len(said) == 0 || said[len(said)-1] != now {
		w.said[service] = append(said, now)
	}
}

// end ends the watch and returns what was seen, by Service.
func (w *endpointWatch) end(t *testing.T) map[string][]string {
	t.Helper()
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		t.Error(w.failed)
	}
	return maps.Clone(w.said)
}

// selectorsOfBefore gives the Services of MySQL the selectors that releases without a cache store wrote.
func selectorsOfBefore(t *testing.T, g *stage.Group, services ...string) {
	t.Helper()
	for _, name := range services {
		s := &corev1.Service{}
		key := client.ObjectKey{Namespace: g.Namespace, Name: name}
		if err := g.Kube.Get(t.Context(), key, s); err != nil {
			t.Fatal(err)
		}
		if s.Spec.Selector[v1alpha1.LabelName] != v1alpha1.NameMySQL {
			t.Fatalf("the selector of %s does not name MySQL: %v", name, s.Spec.Selector)
		}
		before := s.DeepCopy()
		delete(s.Spec.Selector, v1alpha1.LabelName)
		if err := g.Kube.Patch(t.Context(), s, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}

func selectorsNameMySQL(g *stage.Group, services ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, name := range services {
			s := &corev1.Service{}
			if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, s); err != nil {
				return err
			}
			if s.Spec.Selector[v1alpha1.LabelName] != v1alpha1.NameMySQL {
				return fmt.Errorf("that of %s is %v", name, s.Spec.Selector)
			}
		}
		return nil
	}
}

// A group that a release without a cache store made is taken over by this one under load, and gets a cache that is turned on and off again:
// no write fails, no Service of MySQL is without an endpoint for a moment or has another than MySQL's, and no pod of MySQL is replaced.
func TestAGroupOfBeforeGetsACache(t *testing.T) {
	g, group := whole(t)
	primary, replicas := v1alpha1.PrimaryService(g.Name), v1alpha1.ReplicasService(g.Name)
	pods := mysqlPods(t, g)
	names := map[string]bool{}
	var active string
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		names[pod.Name] = true
		if site == group.Status.ActiveSite {
			active = pod.Name
		}
	}
	w := witnesses(t, g)
	at := load.Now()
	withoutOperator(t)
	selectorsOfBefore(t, g, primary, replicas)
	endpoints := watchEndpoints(t, g, primary, replicas)

	if err := lab.ScaleOperator(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), time.Minute, "the selectors to name MySQL", selectorsNameMySQL(g, primary, replicas)); err != nil {
		t.Fatal(err)
	}
	samePods(t, g, pods, "the upgrade")
	cacheOn(t, g, stage.CacheSpec(v1alpha1.CacheValkey))
	sleep(t, 5*time.Second)
	if err := setSpec(t.Context(), g, func(s *v1alpha1.MysqlFailoverGroupSpec) { s.Cache.Enabled = false }); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), cacheUp, "the cache to go", g.CacheNotGone); err != nil {
		t.Fatal(err)
	}
	samePods(t, g, pods, "turning the cache on and off")

	for service, seen := range endpoints.end(t) {
		t.Logf("endpoints of %s: %q", service, seen)
		for _, now := range seen {
			if now == "" {
				t.Errorf("%s was without endpoints", service)
			}
			for pod := range strings.FieldsSeq(now) {
				if !names[pod] || service == primary && pod != active {
					t.Errorf("%s led to %s", service, pod)
				}
			}
		}
	}
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
	if len(v.Missing) > 0 || v.Lost > 0 {
		t.Errorf("%d rows are missing, %d reported lost", len(v.Missing), v.Lost)
	}
	for reason, n := range testimony.Service.Refused {
		t.Errorf("%d writes through the Service failed: %s", n, reason)
	}
}
