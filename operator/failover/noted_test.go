// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestAFirstOpeningWaitsForTheNameOfItsVolumeI12: without it nobody could tell that the volume was replaced after that, and the
// new one, which is empty, would be opened (simulation, seed 8913).
func TestAFirstOpeningWaitsForTheNameOfItsVolumeI12(t *testing.T) {
	for name, tc := range map[string]struct {
		unnoted, provisioned, waits bool
	}{
		"not noted":                        {true, false, true},
		"noted, or it has no name":         {false, false, false},
		"it has the data for long":         {true, true, false},
		"it has the data, and it is noted": {false, true, false},
	} {
		s := factstest.World(Durable{Epoch: 1, ActiveSite: "a", Transition: &Transition{Kind: v1alpha1.FailoverBootstrap,
			Step: v1alpha1.TransitionFencing, To: "a", StartedAt: factstest.Start}}, factstest.Seen("a", "A:1-9", 1), factstest.Seen("b", "A:1-9", 1))
		s.Now, s.LeaderSince = factstest.Start.Add(time.Second), factstest.Start
		s.Sites[0].Unnoted, s.Sites[0].Provisioned = tc.unnoted, tc.provisioned
		d := Decide(s, Memory{Sites: map[string]*SiteMemory{"a": {Ack: &Ack{Epoch: 1, Fenced: true}}, "b": {Ack: &Ack{Epoch: 1, Fenced: true}}}})
		if got := d.Reason == v1alpha1.ReasonVolumeNotNoted; got != tc.waits || got != d.Hold || got == (d.Reason == v1alpha1.ReasonGatePassed) {
			t.Errorf("I12: %s: %s %s hold %t: %s", name, d.Verdict, d.Reason, d.Hold, d.Message)
		}
	}
}
