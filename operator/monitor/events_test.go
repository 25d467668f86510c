// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

// recorded is the API server's side of client-go's recorder of events.
type recorded struct {
	mu     sync.Mutex
	made   []*eventsv1.Event
	merged int
}

func (r *recorded) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, e.DeepCopy())
	return e, nil
}

func (r *recorded) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return e, nil
}

func (r *recorded) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.merged++
	return e, nil
}

// notes waits until so many events have arrived.
func (r *recorded) notes(t *testing.T, n int) (notes []string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		arrived := len(r.made)+r.merged >= n
		r.mu.Unlock()
		if arrived {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.made {
		about := "nobody"
		if e.Related != nil {
			about = e.Related.Kind + "/" + e.Related.Namespace + "/" + e.Related.Name
		}
		notes = append(notes, about+": "+e.Note)
	}
	slices.Sort(notes)
	return notes
}

// TestEventsOfTwoSitesAreTwo: the recorder makes one of two events that differ in their notes alone, and keeps the note of the
// first. Of two sites that go silent in one look both must be named.
func TestEventsOfTwoSitesAreTwo(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	sink := &recorded{}
	broadcaster := clientevents.NewBroadcaster(sink)
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := testLoop(t, &pushes{}, nil)
	l.m.Events = events.NewRecorder(broadcaster.NewRecorder(scheme, "mfg"))
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", ResourceVersion: "7"}}
	group.Spec.Sites = []v1alpha1.Site{{Name: "east"}, {Name: "south"}, {Name: "west"}}
	look := func(state v1alpha1.SiteState) failover.Decision {
		d := failover.Decision{Topology: failover.TopologyHealthy, Verdict: failover.VerdictNothing, Status: failover.Durable{ActiveSite: "east"}}
		for _, site := range []string{"south", "west"} {
			d.Views = append(d.Views, failover.View{Name: site, State: state, Message: "neither the sidecar nor MySQL answers"})
		}
		return d
	}
	l.events(group, look(v1alpha1.SiteReplica))
	l.events(group, look(v1alpha1.SiteUnreachable))
	want := []string{"Service/shop/mysql-orders-south: south: neither the sidecar nor MySQL answers",
		"Service/shop/mysql-orders-west: west: neither the sidecar nor MySQL answers"}
	if diff := cmp.Diff(want, sink.notes(t, 2)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestOnlyASiteStandsBesideAnEvent: a person may ask for a site that the group does not have, under any name.
func TestOnlyASiteStandsBesideAnEvent(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Spec.Sites = []v1alpha1.Site{{Name: "east"}}
	group.Status.Sites = []v1alpha1.SiteStatus{{Name: "gone"}}
	for site, want := range map[string]bool{"east": true, "gone": true, "": false, "No/Such": false} {
		if got := siteObject(group, site) != nil; got != want {
			t.Errorf("%q: %t, want %t", site, got, want)
		}
	}
}
