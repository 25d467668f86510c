// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// escrowGone is in the operator's words (operator/failover/escrow.go) on a site whose pod runs well and has the only copy of its
// keyring: looking at the pod shows nothing.
const escrowGone = "escrow Secret of its keyring is gone"

// nextStep is what a person can do about a planned failover that the operator refused, reverted or gave up, by its reason
// (operator/failover/planned.go) and, where several things have one, by its words. An unknown reason leads to the page that
// explains all of them.
func (op *failoverOp) nextStep(reason v1alpha1.Reason, message string) string {
	group := op.Group + " -n " + op.Namespace
	again := fmt.Sprintf("kubectl mfg failover %s --to %s", group, op.To)
	if strings.Contains(message, escrowGone) {
		return fmt.Sprintf("bring its keyring back, and do not touch its pod until then: kubectl mfg recover-keyring %s %s -n %s; then: %s", op.Group, op.To, op.Namespace, again)
	}
	switch reason {
	case v1alpha1.ReasonPaused:
		return "to go on: kubectl mfg resume " + group
	case v1alpha1.ReasonModeObserve:
		return fmt.Sprintf("to let the operator act: kubectl patch mfg %s --type merge -p '{\"spec\":{\"failover\":{\"mode\":\"Manual\"}}}'", group)
	case v1alpha1.ReasonAlreadyActive:
		return "see who is active: kubectl mfg status " + group
	case v1alpha1.ReasonUnknownSite:
		return "see which sites there are: kubectl mfg status " + group
	case v1alpha1.ReasonAborted:
		return "to try again: " + again
	case v1alpha1.ReasonTargetLags:
		return "watch it catch up: kubectl mfg status " + group + " -w; then: " + again
	case v1alpha1.ReasonPauseTimeout:
		return "find out what holds it up (a long transaction, a lag of " + op.To + "): kubectl mfg events " + group + " --since 10m; then: " + again
	case v1alpha1.ReasonCloneInProgress:
		return "see how far the work on its data is: kubectl mfg status " + group + " -w; then: " + again
	case v1alpha1.ReasonNotFit, v1alpha1.ReasonNotReplicating, v1alpha1.ReasonTargetLost:
		return fmt.Sprintf("see what is wrong with %s: kubectl describe pods -n %s -l %s", op.To, op.Namespace, podSelector(op.Group, op.To))
	case v1alpha1.ReasonRoleIsMoving:
		return "watch it move: kubectl mfg status " + group + " -w; then: " + again
	case v1alpha1.ReasonEmergencyFailover:
		return "see what took over, and why: kubectl mfg history " + group
	}
	return "see every rule: kubectl mfg explain " + group
}

// unfinished adds the next step to the outcome of a move that did not succeed.
func (op *failoverOp) unfinished(rep *requestReport) {
	if rep.Outcome != outcomeDone && rep.Outcome != outcomeRequested {
		rep.Next = op.nextStep(rep.Reason, rep.Message)
	}
}

// activeAlready refuses a move to where the role is.
func (op *failoverOp) activeAlready(g *v1alpha1.MysqlFailoverGroup) error {
	return refused("refused: %s is active already\n  see how it is: kubectl mfg status %s -n %s", op.To, g.Name, g.Namespace)
}
