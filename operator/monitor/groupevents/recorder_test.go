// SPDX-License-Identifier: Apache-2.0

package groupevents

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
	"k8s.io/apimachinery/pkg/types"
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
	k := Told{Key: types.NamespacedName{Namespace: "shop", Name: "orders"}}
	recorder := events.NewRecorder(broadcaster.NewRecorder(scheme, "mfg"))
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", ResourceVersion: "7"}}
	group.Spec.Sites = []v1alpha1.Site{{Name: "east"}, {Name: "south"}, {Name: "west"}}
	look := func(state v1alpha1.SiteState) failover.Decision {
		d := failover.Decision{Topology: failover.TopologyHealthy, Verdict: failover.VerdictNothing, Status: failover.Durable{ActiveSite: "east"}}
		for _, site := range []string{"south", "west"} {
			d.Views = append(d.Views, failover.View{Name: site, State: state, Message: "neither the sidecar nor MySQL answers"})
		}
		return d
	}
	k.Tell(To(recorder, group), look(v1alpha1.SiteReplica))
	k.Tell(To(recorder, group), look(v1alpha1.SiteUnreachable))
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
		if got := SiteObject(group, site) != nil; got != want {
			t.Errorf("%q: %t, want %t", site, got, want)
		}
	}
}

// TestCannotWriteIsToldOnce: one event for each reason, and one when it is over.
func TestCannotWriteIsToldOnce(t *testing.T) {
	var told []string
	l := &Told{}
	emit := func(_ string, e events.Event, _ string, _ ...any) { told = append(told, string(e.Reason)) }
	open := failover.Decision{Topology: failover.TopologyHealthy, Status: failover.Durable{ActiveSite: "west"}}
	bad := func(reason v1alpha1.Reason) failover.Decision {
		d := open
		d.Unwritable = &failover.Unwritable{Site: "west", Reason: reason}
		return d
	}
	for _, d := range []failover.Decision{open, bad("DiskFull"), bad("DiskFull"), bad("Offline"), open, open} {
		l.writeEvents(emit, d)
	}
	if want := []string{"ClientsCannotWrite", "ClientsCannotWrite", "ClientsCanWrite"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// TestEachRefusalIsToldOnce: the second of two refused requests is another one.
func TestEachRefusalIsToldOnce(t *testing.T) {
	k := Told{}
	told := 0
	emit := func(string, events.Event, string, ...any) { told++ }
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	refused := func(at time.Time, answered bool) failover.Decision {
		return failover.Decision{Status: failover.Durable{Planned: &failover.Planned{To: "west", Phase: v1alpha1.PlannedRefused, StartedAt: at, Answered: answered}}}
	}
	for _, d := range []failover.Decision{refused(at, false), refused(at, true), refused(at.Add(time.Minute), false), refused(at.Add(time.Minute), true)} {
		k.plannedEvents(emit, d)
	}
	if told != 2 {
		t.Errorf("two refusals were told %d times", told)
	}
}
