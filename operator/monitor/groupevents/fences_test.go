// SPDX-License-Identifier: Apache-2.0

package groupevents

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// Who keeps a writer out says so once, and counts it; also if the writer is the first thing that a new operator sees.
func TestFencesAreToldAndCounted(t *testing.T) {
	k := Told{Key: types.NamespacedName{Namespace: "shop", Name: "orders"}}
	metrics.ForgetGroup(k.Key.Namespace, k.Key.Name)
	var said []string
	emit := func(_ string, e events.Event, format string, args ...any) {
		said = append(said, string(e.Reason)+": "+fmt.Sprintf(format, args...))
	}
	writer := failover.Decision{Verdict: failover.VerdictNothing, Views: []failover.View{
		{Name: "east", State: v1alpha1.SitePrimary},
		{Name: "west", State: v1alpha1.SiteFenced, Reason: v1alpha1.ReasonForeignWriter, Message: "is writable although it is not active; it is being fenced"},
	}}
	silence := failover.Decision{Topology: failover.TopologyAllUnreachable, Verdict: failover.VerdictAlert, Message: "no site answers; nothing is done"}
	passed := failover.Decision{Verdict: failover.VerdictPromote, Status: failover.Durable{Epoch: 2, ActiveSite: "west", Transition: &failover.Transition{
		Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionOpening, From: "east", To: "west", Evidence: []string{"lease of east has run out"}}}}
	first := failover.Decision{Verdict: failover.VerdictPromote, Status: failover.Durable{Epoch: 1, ActiveSite: "east", Transition: &failover.Transition{
		Kind: v1alpha1.FailoverBootstrap, Step: v1alpha1.TransitionOpening, To: "east"}}}
	planned := writer // it was the active site a moment ago
	planned.Status.Transition = &failover.Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, From: "west", To: "east"}
	for _, d := range []failover.Decision{first, planned, {}, writer, writer, {}, writer, silence, silence, {}, silence, passed} {
		k.fenceEvents(emit, d)
	}
	foreign := "WriterFenced: west is writable although it is not active; it is being fenced"
	want := []string{foreign, foreign, "AllSitesUnreachable: no site answers; nothing is done", "AllSitesUnreachable: no site answers; nothing is done",
		"FencedOldPrimary: east accepts no commits: lease of east has run out"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		site, cause string
		want        float64
	}{{"west", "ForeignWriter", 2}, {"east", "Emergency", 1}} {
		if got := testutil.ToFloat64(fences.WithLabelValues(k.Key.Namespace, k.Key.Name, tc.site, tc.cause)); got != tc.want {
			t.Errorf("fences of %s for %s: %v, want %v", tc.site, tc.cause, got, tc.want)
		}
	}
}
