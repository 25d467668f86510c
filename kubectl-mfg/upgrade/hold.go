// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// HoldCluster is what a hold needs of the cluster.
type HoldCluster interface {
	request.Cluster
	Kube() kubernetes.Interface
}

// Hold is `kubectl mfg upgrade pause` and `resume`: for all groups, or with Group for one.
type Hold struct {
	request.Request
	// Resume ends the hold.
	Resume bool
	// Why is written beside a pin; empty says when it was set.
	Why string
}

// longestWhy bounds the text of an annotation.
const longestWhy = 200

// Validate checks only the command line.
func (op *Hold) Validate() error {
	switch {
	case op.Why != "" && op.Group == "":
		return errors.New("--why is written beside the pin of a GROUP, which is missing")
	case len(op.Why) > longestWhy:
		return fmt.Errorf("--why has more than %d bytes", longestWhy)
	}
	return op.Request.Validate()
}

// Run shows the plan, asks, and does it. There is nothing to wait for: no turn begins by a Lease that was read earlier.
func (op *Hold) Run(ctx context.Context, env cli.Environment, c HoldCluster) (int, error) {
	if op.Group != "" {
		return op.pin(ctx, env, c)
	}
	lease, err := readLease(ctx, c.Kube(), op.OperatorNamespace)
	if err != nil {
		return cli.ExitError, err
	}
	change := map[string]string{v1alpha1.AnnotationUpgradePaused: clock(ctx, env, c)}
	if op.Resume {
		change = map[string]string{v1alpha1.AnnotationUpgradePaused: "", v1alpha1.AnnotationUpgradeStopped: ""}
	}
	plan := op.planForAll(lease)
	rep := op.Report(op.verb(), plan, change)
	rep.Metadata = report.Metadata{Name: lease.Name, Namespace: lease.Namespace}
	paused, stopped := lease.Annotations[v1alpha1.AnnotationUpgradePaused], lease.Annotations[v1alpha1.AnnotationUpgradeStopped]
	if op.Resume && paused == "" && stopped == "" || !op.Resume && paused != "" {
		rep.Outcome, rep.Message = cli.OutcomeDone, held(paused, stopped)+"; nothing was changed"
		return op.Finish(env, rep)
	}
	op.ShowPlan(env, op.title("upgrades of all groups"), plan)
	if err := op.Confirm(ctx, env, "Do it?"); err != nil {
		return cli.ExitError, err
	}
	if err := op.annotate(ctx, env, c, lease, change); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = cli.OutcomeDone, "no further turn begins; to go on: "+op.command("resume")
	if op.Resume {
		rep.Message = "turns begin again; see whose it is: " + op.command("status")
	}
	return op.Finish(env, rep)
}

// command is a command about the turns of the same operator.
func (op *Hold) command(verb string) string {
	return "kubectl mfg upgrade " + verb + flagsOf(op.OperatorNamespace)
}

// flagsOf are the flags by which a command finds the operator; empty for the usual one. Another one has turns of its own.
func flagsOf(operatorNamespace string) string {
	if operatorNamespace == live.DefaultNamespace {
		return ""
	}
	return " --operator-namespace " + operatorNamespace
}

// clock returns the time of the API server, or of this machine.
func clock(ctx context.Context, env cli.Environment, c HoldCluster) string {
	now := env.Now()
	if at, _, err := c.Clock(ctx); err == nil {
		now = at
	}
	return now.UTC().Format(time.RFC3339)
}

func (op *Hold) verb() string {
	if op.Resume {
		return "upgrade resume"
	}
	return "upgrade pause"
}

func (op *Hold) title(what string) string {
	if op.Resume {
		return "Resume " + what
	}
	return "Pause " + what
}

// held says what is held, and why.
func held(paused, stopped string) string {
	switch {
	case paused != "":
		return "upgrades are paused since " + paused
	case stopped != "":
		return "upgrades are stopped: " + stopped
	}
	return "upgrades are neither paused nor stopped"
}

func (op *Hold) planForAll(lease *coordinationv1.Lease) []screen.Line {
	turn := "no group has the turn"
	if h := lease.Spec.HolderIdentity; h != nil && *h != "" {
		turn = *h + " has the turn"
	}
	paused, stopped := lease.Annotations[v1alpha1.AnnotationUpgradePaused], lease.Annotations[v1alpha1.AnnotationUpgradeStopped]
	now := screen.Line{Label: "Now", Text: held(paused, stopped) + "; " + turn}
	if !op.Resume {
		return []screen.Line{
			now,
			{Label: "After", Text: "no further group gets the pods of a new version of the operator; the turn that has begun continues, and your own changes still take effect at once"},
			{Label: "Undo", Text: op.command("resume")},
		}
	}
	lines := []screen.Line{now, {Label: "After", Text: "groups get their turn again, one at a time"}}
	if stopped != "" {
		lines = append(lines, screen.Line{Label: "Risk", Text: "the group that stopped the others was not healthy with its new pods, and others may not be either: look at it first"})
	}
	return append(lines, screen.Line{Label: "Undo", Text: op.command("pause")})
}

// annotate changes the Lease as it was read. A Lease that stopped for another reason meanwhile is not what the user agreed to.
func (op *Hold) annotate(ctx context.Context, env cli.Environment, c HoldCluster, lease *coordinationv1.Lease, change map[string]string) error {
	if op.DryRun == request.DryRunClient {
		return nil
	}
	options := metav1.PatchOptions{FieldManager: cli.FieldManager}
	if op.DryRun == request.DryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	agreed, pause := lease.Annotations[v1alpha1.AnnotationUpgradeStopped], lease.Annotations[v1alpha1.AnnotationUpgradePaused]
	for try := 1; ; try++ {
		body, err := patchOf(lease, change)
		if err != nil {
			return err
		}
		leases := c.Kube().CoordinationV1().Leases(lease.Namespace)
		_, err = leases.Patch(ctx, lease.Name, types.MergePatchType, body, options)
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err) || try == request.PatchTries:
			return cli.RightsHint(err, "patch", "leases.coordination.k8s.io/"+lease.Name, lease.Namespace)
		case !env.Wait(ctx, 20*time.Millisecond):
			return cli.NotConfirmed("interrupted: nothing was changed")
		}
		if lease, err = readLease(ctx, c.Kube(), op.OperatorNamespace); err != nil {
			return err
		}
		stopped := lease.Annotations[v1alpha1.AnnotationUpgradeStopped]
		if op.Resume && stopped == "" && agreed != "" {
			return cli.Refused("refused: somebody cleared the stop meanwhile; nothing was changed\n  see how it is now: %s", op.command("status"))
		}
		if op.Resume && stopped != agreed {
			return cli.Refused("refused: it stopped meanwhile: %s\n  look at that group, then ask again", stopped)
		}
		if paused := lease.Annotations[v1alpha1.AnnotationUpgradePaused]; op.Resume && paused != pause {
			return cli.Refused("refused: somebody paused or resumed upgrades meanwhile; nothing was changed\n  see how it is now: %s", op.command("status"))
		}
	}
}

// patchOf returns a patch of annotations of the version that was read; an empty value removes one.
func patchOf(lease *coordinationv1.Lease, change map[string]string) ([]byte, error) {
	annotations := map[string]any{}
	for key, value := range change {
		annotations[key] = value
		if value == "" {
			annotations[key] = nil
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": lease.ResourceVersion, "uid": lease.UID, "annotations": annotations}})
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return body, nil
}

// pin keeps the pods of one group as they are, or ends that.
func (op *Hold) pin(ctx context.Context, env cli.Environment, c HoldCluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	why := op.Why
	if why == "" {
		why = "since " + clock(ctx, env, c)
	}
	pinned := g.Annotations[v1alpha1.AnnotationUpgradePin]
	now, after := "it is not pinned", "its pods stay those of the version of the operator that made them, also when its turn comes; failovers and what a person changes go on as ever"
	undo := fmt.Sprintf("kubectl mfg upgrade resume %s -n %s", op.Group, op.Namespace)
	done := "pinned: it gets no turn; to end that: " + undo
	if pinned != "" {
		now = "it is pinned: " + pinned
	}
	if op.Resume {
		why, after, undo = "", "it gets the pods of the operator's version when its turn comes", fmt.Sprintf("kubectl mfg upgrade pause %s -n %s", op.Group, op.Namespace)
		done = "it is not pinned any more, and gets its turn"
	}
	change := map[string]string{v1alpha1.AnnotationUpgradePin: why}
	plan := []screen.Line{{Label: "Now", Text: now}, {Label: "After", Text: after}}
	if turn := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionUpgradePending); turn != nil && turn.Reason == string(v1alpha1.ReasonUpgradeUnderWay) && !op.Resume {
		plan = append(plan, screen.Line{Label: "Warning", Text: "it has the turn: a pod that is being replaced comes up as the new one, and the group keeps the turn until it is healthy again"})
	}
	plan = append(plan, screen.Line{Label: "Undo", Text: undo})
	rep := op.Report(op.verb(), plan, change)
	if (pinned != "") != op.Resume {
		rep.Outcome, rep.Message = cli.OutcomeDone, now+"; nothing was changed"
		return op.Finish(env, rep)
	}
	op.ShowPlan(env, op.title(fmt.Sprintf("upgrades of %s (namespace %s)", op.Group, op.Namespace)), plan)
	if err := op.Confirm(ctx, env, "Do it?"); err != nil {
		return cli.ExitError, err
	}
	if _, err := op.Submit(ctx, env, c, change, request.Always); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = cli.OutcomeDone, done
	return op.Finish(env, rep)
}
