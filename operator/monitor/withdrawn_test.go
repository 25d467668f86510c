// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestNoGateIsPassedOnAWithdrawnOrderI1: the plugin said "loss: nothing" to the person who withdrew the order to accept a loss, and the
// operator looked at the group a moment before that. The same holds for a pause that came since, and for another specification, in which the
// target may be dr-only (I6).
func TestNoGateIsPassedOnAWithdrawnOrderI1(t *testing.T) {
	group := func(generation int64, annotations map[string]string) *v1alpha1.MysqlFailoverGroup {
		g := keptGroup()
		g.Generation, g.Annotations = generation, annotations
		return g
	}
	accept := map[string]string{v1alpha1.AnnotationForceFailover: "west"}
	pause := map[string]string{v1alpha1.AnnotationPauseUntil: "2026-12-24T18:00:00Z"}
	other := map[string]string{v1alpha1.AnnotationRecloneSite: "south"}
	opens := failover.Durable{Epoch: 1, ActiveSite: "west"}
	for name, tc := range map[string]struct {
		decidedOn, stands *v1alpha1.MysqlFailoverGroup
		decided           failover.Durable
		want              error
	}{
		"it stands":                 {group(1, accept), group(1, accept), opens, nil},
		"withdrawn":                 {group(1, accept), group(1, nil), opens, errOvertaken},
		"another site":              {group(1, accept), group(1, map[string]string{v1alpha1.AnnotationForceFailover: "south"}), opens, errOvertaken},
		"paused since":              {group(1, nil), group(1, pause), opens, errOvertaken},
		"another specification":     {group(1, nil), group(2, nil), opens, errOvertaken},
		"an order of no concern":    {group(1, nil), group(1, other), opens, nil},
		"withdrawn, only a note":    {group(1, accept), group(1, nil), failover.Durable{}, nil},
		"another spec, only a note": {group(1, nil), group(2, nil), failover.Durable{}, nil},
	} {
		api := &apiServer{group: tc.stands}
		l := testLoop(t, &pushes{}, api)
		l.m.Client, l.durable, l.loaded = api, failover.Durable{}, true
		if err := l.persist(t.Context(), tc.decidedOn, failover.Decision{Status: tc.decided}); !errors.Is(err, tc.want) {
			t.Errorf("I1: %s: %v", name, err)
		}
		if wrote := api.writes > 0; wrote != (tc.want == nil) {
			t.Errorf("I1: %s: %d writes", name, api.writes)
		}
	}
}
