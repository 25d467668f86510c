// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	"github.com/mysql-mfg/mfg/operator/failover"
)

// I24: who works beside the loop hears at once that the active site is in doubt, and which site is being promoted: also what this very poll
// decided.
func TestFactsTellWhoMayBeNeeded(t *testing.T) {
	open := failover.Site{Name: "a", MySQL: failover.MySQL{Direct: true}, Sidecar: failover.Sidecar{Answered: true}}
	silent, shut := open, open
	silent.MySQL.Direct = false
	shut.MySQL.SuperReadOnly = true
	moving := failover.Durable{ActiveSite: "a", Transition: &failover.Transition{From: "a", To: "b"}}
	still := failover.Durable{ActiveSite: "a"}
	for name, tc := range map[string]struct {
		site            failover.Site
		before, decided failover.Durable
		doubt           bool
		target          string
	}{
		"all is well":             {open, still, still, false, ""},
		"it does not answer":      {silent, still, still, true, ""},
		"it takes no writes":      {shut, still, still, true, ""},
		"no site is active yet":   {silent, failover.Durable{}, failover.Durable{}, false, ""},
		"the role moves":          {open, moving, moving, false, "b"},
		"it was decided just now": {silent, still, moving, true, "b"},
	} {
		l := &loop{}
		l.publishFacts(nil, failover.Snapshot{Sites: []failover.Site{tc.site}, Status: tc.before}, failover.Decision{Status: tc.decided})
		f := l.facts.Load()
		if f == nil || f.InDoubt != tc.doubt || f.Target != tc.target {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
