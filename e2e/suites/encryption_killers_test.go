// SPDX-License-Identifier: Apache-2.0

//go:build lab && kills

package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/kills"
)

// keyringStep is a step at which a site is seen in status.
type keyringStep struct {
	at func(*v1alpha1.MysqlFailoverGroup, string) bool
	// unsealed: the pod must be the one that can write its keyring. Right after status says so it is still the one before.
	unsealed bool
}

func phaseStep(unsealed bool, phase v1alpha1.KeyringPhase, stages ...v1alpha1.KeyringStage) *keyringStep {
	return &keyringStep{func(group *v1alpha1.MysqlFailoverGroup, site string) bool {
		k := keyringOf(group, site)
		return k.Phase == phase && slices.Contains(stages, k.Stage)
	}, unsealed}
}

var steps = map[string]*keyringStep{
	kills.StepPending:  phaseStep(false, v1alpha1.KeyringPending, ""),
	kills.StepUnsealed: phaseStep(true, v1alpha1.KeyringUnsealed, ""),
	kills.StepRotating: phaseStep(true, v1alpha1.KeyringUnsealed, v1alpha1.KeyringRotating),
	kills.StepRotated: {func(group *v1alpha1.MysqlFailoverGroup, site string) bool {
		k := keyringOf(group, site)
		return k.Phase == v1alpha1.KeyringUnsealed && k.Rotated
	}, true},
	kills.StepEscrowed: phaseStep(true, v1alpha1.KeyringEscrowed, "", v1alpha1.KeyringRotating),
	kills.StepSealing:  phaseStep(false, v1alpha1.KeyringEscrowed, v1alpha1.KeyringSealing),
	kills.StepCloning: {func(group *v1alpha1.MysqlFailoverGroup, site string) bool {
		clone := siteOf(group, site).Clone
		return clone != nil && clone.Source != "" && keyringOf(group, site).Work == v1alpha1.KeyringClone
	}, true},
}

// killer ends something at once.
type killer struct {
	do   func(context.Context, *stage.Group, string) error
	undo func(context.Context, *stage.Group, string) error
}

var killers = map[string]killer{
	kills.Mysqld: {do: func(ctx context.Context, g *stage.Group, site string) error {
		return stage.KillProcess(ctx, g, site, stage.Mysqld)
	}},
	kills.Sidecar: {do: func(ctx context.Context, g *stage.Group, site string) error {
		return stage.KillProcess(ctx, g, site, stage.Sidecar)
	}},
	kills.Pod:      {do: faultNamed("pod-force-delete").Break},
	kills.Node:     {do: faultNamed("node-kill").Break, undo: faultNamed("node-kill").Repair},
	kills.Operator: {do: killOperator},
}

func faultNamed(name string) stage.Fault {
	f, err := stage.FaultNamed(name)
	if err != nil {
		panic(err) // the list is a constant
	}
	return f
}

func killOperator(ctx context.Context, g *stage.Group, _ string) error { return g.KillOperator(ctx) }

// lookEvery is how often a step is looked for: some last for a moment.
const lookEvery = 25 * time.Millisecond

// killAt waits for a step, kills as soon as there is something to kill, and tells when. hit is false if the work was over
// without that.
func killAt(t *testing.T, g *stage.Group, site string, c kills.Case) (at time.Time, hit bool) {
	t.Helper()
	step, kill := steps[c.Step], killers[c.Kill]
	last := errors.New("the step was not seen")
	for deadline := time.Now().Add(2 * resealing); ; time.Sleep(lookEvery) {
		group, err := g.Get(t.Context())
		switch {
		case err == nil && step.at(group, site):
			if last = killNow(t.Context(), g, site, c); last == nil {
				at := time.Now()
				undo(t, g, site, kill)
				return at, true
			}
		case err == nil && over(group):
			t.Logf("missed %s: %v", c.Name(), last)
			return time.Time{}, false
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("kill: %v; %v", last, err)
		}
	}
}

// killNow kills unless the pod is still the one before.
func killNow(ctx context.Context, g *stage.Group, site string, c kills.Case) error {
	if steps[c.Step].unsealed && c.Kill != kills.Operator {
		pod, err := g.Pod(ctx, site)
		if err != nil {
			return err
		}
		if !memoryBacked(pod.Spec) {
			return fmt.Errorf("the pod of %s is still sealed", site)
		}
	}
	return killers[c.Kill].do(ctx, g, site)
}

// over is true once an order was answered, or a new group is sealed.
func over(group *v1alpha1.MysqlFailoverGroup) bool {
	for _, order := range []string{v1alpha1.AnnotationRotateKeyring, v1alpha1.AnnotationRecloneSite} {
		if group.Annotations[order] != "" {
			return false
		}
	}
	return group.Status.EncryptionAtRest != nil && notSealed(group) == nil
}

// undo takes a fault back that does not pass by itself, after a while in which the group has noticed it.
func undo(t *testing.T, g *stage.Group, site string, kill killer) {
	t.Helper()
	if kill.undo == nil {
		return
	}
	sleep(t, 5*time.Second)
	if err := kill.undo(t.Context(), g, site); err != nil {
		t.Fatal(err)
	}
}
