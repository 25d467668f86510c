// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// ordersMost is how often a test orders one move.
const ordersMost = 3

// passing are the answers to an ordered move that may come of a machine which stands still for seconds: the operator has taken the move back, or
// refused it, with nothing changed. A person orders it again; so does a test whose subject is something else. A move that never works still fails.
var passing = []v1alpha1.Reason{
	v1alpha1.ReasonPauseTimeout, v1alpha1.ReasonNotHealthy, v1alpha1.ReasonNotReplicating, v1alpha1.ReasonTargetSilent, v1alpha1.ReasonTargetLags, v1alpha1.ReasonTargetLost,
}

func passes(reason string) bool { return slices.Contains(passing, v1alpha1.Reason(reason)) }

// moveRole orders a planned failover to the other candidate and waits until that is open.
func moveRole(t *testing.T, g *stage.Group) string {
	t.Helper()
	for try := 1; ; try++ {
		group, err := g.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		to := otherCandidate(t, group)
		annotate(t, g, v1alpha1.AnnotationPlannedFailover, to)
		last := answered(t, g, v1alpha1.AnnotationPlannedFailover, to, time.Minute)
		if last.Outcome == v1alpha1.RequestDone {
			awaitOpen(t, g, to)
			return to
		}
		if !passes(last.Reason) || try == ordersMost {
			t.Fatalf("the move to %s: %+v", to, last)
		}
		t.Logf("the move to %s is ordered again: %+v", to, last)
		if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
			t.Fatal(err)
		}
	}
}

func awaitOpen(t *testing.T, g *stage.Group, to string) {
	t.Helper()
	if _, err := g.Await(t.Context(), time.Minute, to+" to be open", func(group *v1alpha1.MysqlFailoverGroup) error {
		if group.Status.ActiveSite != to || group.Status.Transition != nil || !meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionAvailable) {
			return errors.New(stage.Describe(group))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// movedByPlugin orders the move with the plugin and returns the answer, and what the plugin said, of the order that was carried out.
func movedByPlugin(t *testing.T, g *stage.Group, to string) (moved, answer) {
	t.Helper()
	for try := 1; ; try++ {
		var m moved
		a := plugin(t, "-n", g.Namespace, "failover", g.Name, "--to", to, "--yes", "-o", "json")
		if err := json.Unmarshal([]byte(a.out), &m); err != nil {
			t.Fatalf("exit code %d: %v: %s%s", a.code, err, a.out, a.errOut)
		}
		if a.code == 0 {
			return m, a
		}
		if !passes(m.Reason) || try == ordersMost {
			t.Fatalf("the move to %s: exit code %d: %+v: %s", to, a.code, m, a.errOut)
		}
		t.Logf("the move to %s is ordered again: %+v", to, m)
		if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
			t.Fatal(err)
		}
	}
}
