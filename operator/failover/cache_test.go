// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// I22: a cache delays a planned failover by no more than it may, and a group without one by nothing.
func TestACacheIsWaitedForNoLongerThanSaid(t *testing.T) {
	minute := CachePolicy{SyncTimeout: time.Minute}
	refuses := CachePolicy{SyncTimeout: time.Minute, Refuses: true}
	for name, tc := range map[string]struct {
		reason         string
		behind         string
		policy         CachePolicy
		waited         time.Duration
		waits, refused bool
	}{
		"none":      {reason: "a group without a cache, or one of which nobody knows", policy: refuses},
		"no time":   {reason: "syncTimeout 0s waits for nothing", behind: "x"},
		"young":     {reason: "it may catch up", behind: "x", policy: minute, waited: time.Minute - time.Millisecond, waits: true},
		"over":      {reason: "Proceed", behind: "x", policy: minute, waited: time.Minute},
		"refused":   {reason: "Refuse", behind: "x", policy: refuses, waited: time.Minute, waits: true, refused: true},
		"caught up": {reason: "what has caught up is not asked how long it took", policy: refuses, waited: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Now: factstest.Start, Policy: Policy{PollInterval: 2 * time.Second, Cache: tc.policy}, Sites: []Site{{Name: "a"}, {Name: "b", CacheBehind: tc.behind}}}
			d, waits := awaitCache(s, Decision{}, Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, StartedAt: factstest.Start.Add(-tc.waited)})
			if waits != tc.waits {
				t.Errorf("%s: waits %t", tc.reason, waits)
			}
			p := d.Status.Planned
			if refused := p != nil && p.Phase == v1alpha1.PlannedRefused; refused != tc.refused || refused && (p.Reason != v1alpha1.ReasonCacheTargetNotSynced || len(p.Remedies) == 0) {
				t.Errorf("%s: %+v", tc.reason, p)
			}
			if waits && !tc.refused && (!d.Persist || p.Phase != v1alpha1.PlannedWaiting || d.Next != 100*time.Millisecond) {
				t.Errorf("%s: %+v %s", tc.reason, p, d.Next)
			}
		})
	}
}
