// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A person who is needed is told, and what for; nobody is told anything of a site that waits for nothing.
func TestMessages(t *testing.T) {
	trouble := func(_ *Group, s *Site) { s.Report.Trouble = "the operator does not answer" }
	failedTry := func(_ *Group, s *Site) { s.Job.Trouble = "lock wait timeout" }
	for name, tt := range map[string]struct {
		from  v1alpha1.KeyringPhase
		given []change
		want  string
	}{
		"the Secret is gone":    {failed, []change{gone}, "restore it from the pod"},
		"a pod has not told":    {none, []change{forgotten(""), unheard, noData}, "has not said which"},
		"not sealed yet":        {escrowed, []change{work(boot), stage(sealingStage), notReady}, "is not ready"},
		"the pod is lost":       {unsealed, []change{unsealedFor(boot, ""), bare, noData, nothingStored, podLost}, "cannot start"},
		"its sidecar knows":     {unsealed, []change{unsealedFor(clone, digest("4")), trouble}, "does not answer"},
		"it waits for its data": {escrowed, []change{unsealedFor(boot, digest("3")), noData}, "waits for the group's data"},
		"the last try":          {unsealed, []change{unsealedFor(rot, digest("3")), stage(rotatingStage), rotate("b"), failedTry}, "lock wait"},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := at(tt.from, tt.given...)
			if n := Decide(g).Sites[1]; !strings.Contains(n.Status.Message, tt.want) {
				t.Errorf("says %q, want %q", n.Status.Message, tt.want)
			}
		})
	}
	g, _ := at(sealed)
	if n := Decide(g).Sites[1]; n.Status.Message != "" {
		t.Errorf("a sealed site says %q", n.Status.Message)
	}
}

// I18: a keyring counts as read-only only if MySQL and the kernel both say so; a MySQL that says nothing has changed nothing.
func TestCoverage(t *testing.T) {
	written := func(_ *Group, s *Site) { s.Report.MountReadOnly = false }
	known := func(_ *Group, s *Site) {
		s.Status.Coverage = v1alpha1.CoverageStatus{KeyringComponent: component, KeyringReadOnly: true, RedoLogEncrypted: true}
	}
	g, _ := at(sealed, written)
	if n := Decide(g).Sites[1]; n.Status.Coverage.KeyringReadOnly || n.Status.Coverage.KeyringComponent != component {
		t.Errorf("I18: %+v", n.Status.Coverage)
	}
	g, s := at(sealed, known, unanswered)
	if n := Decide(g).Sites[1]; n.Status.Coverage != s.Status.Coverage {
		t.Errorf("%+v is forgotten: %+v", s.Status.Coverage, n.Status.Coverage)
	}
}
