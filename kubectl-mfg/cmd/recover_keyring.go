// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// recoverKeyringOp is `kubectl mfg recover-keyring`.
type recoverKeyringOp struct {
	request
	Site string
	// made is the report as far as it was made.
	made *recoveryReport
}

func (a *app) recoverKeyringCommand() *cobra.Command {
	op := recoverKeyringOp{}
	cmd := &cobra.Command{
		Use:   "recover-keyring GROUP SITE",
		Short: "Bring a lost escrow Secret back from the memory of the site's pod",
		Long: `Bring the escrow Secret of a site's keyring back, that somebody deleted, while the site's pod still runs: its memory
holds the only copy then. Do not delete, restart, evict or drain that pod.

The keyring is read out of the running container into this program's memory, and never written to a disk here. It must
have the digest that the group's status names, before the Secret is made and after; otherwise the Secret is deleted again
and nothing else is changed. Then the Secret is labelled and made immutable, as the operator makes it, the phase is set,
and the site is waited for until it is Sealed.

Each step looks first at what is there: run it again after it was interrupted, or after somebody did a part of it by hand.

` + exitCodes,
		Example: `  # Which one is missing?
  kubectl mfg keyring verify orders

  # Look first: every step and every object, with the key redacted. Nothing is sent
  kubectl mfg recover-keyring orders frankfurt --dry-run=client

  # Read the keyring, compare it, and let the API server check every change, but keep none
  kubectl mfg recover-keyring orders frankfurt --dry-run=server

  # Do it; asks, shows each step, and waits until the site is Sealed
  kubectl mfg recover-keyring orders frankfurt`,
		Args:              exactly("GROUP", "SITE"),
		ValidArgsFunction: a.completeGroupAndSite,
	}
	out := op.bind(cmd, 5*time.Minute)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		op.Site = args[1]
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *recoverKeyringOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	r := &recovery{op: op, env: env, cluster: c, began: env.Now()}
	if err := r.look(ctx); err != nil {
		return exitError, err
	}
	due := r.due()
	rep := op.recoveryReport(r, due)
	op.made = rep
	if len(due) == 0 {
		rep.Outcome = outcomeDone
		rep.Message = fmt.Sprintf("nothing is missing: %s is in escrow with the digest that status names, and %s is sealed", r.status.KeyringSecret, op.Site)
		return op.finishRecovery(env, rep)
	}
	if err := r.mayCarryOut(ctx, due); err != nil {
		return exitError, err
	}
	rep.MissingRights = r.lacking
	if err := r.hasSource(ctx); err != nil {
		return exitError, err
	}
	op.showPlan(env, fmt.Sprintf("Recover the keyring of %s (group %s, namespace %s)", op.Site, op.Group, op.Namespace), r.plan(due))
	if op.DryRun != dryRunNone {
		if err := r.rehearse(ctx, due, rep); err != nil {
			return exitError, err
		}
		return op.finishRecovery(env, rep)
	}
	if err := op.confirm(ctx, env, "Do this now?"); err != nil {
		return exitError, err
	}
	if err := r.carryOut(ctx, due, rep); err != nil {
		return exitError, err
	}
	return op.finishRecovery(env, rep)
}

// recoveryReport is the answer in machine form. It never holds a byte of a key.
type recoveryReport struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	Verb       string          `json:"verb"`
	DryRun     string          `json:"dryRun,omitempty"`
	Site       string          `json:"site"`
	Secret     string          `json:"secret"`
	Version    int64           `json:"version"`
	Digest     string          `json:"digest"`
	// Steps are those that were due, in order; what was found done already is not among them.
	Steps []stepReport `json:"steps"`
	// MissingRights are those without which it cannot be carried out, in a dry run.
	MissingRights []string `json:"missingRights,omitempty"`
	// Outcome is Planned (dry run), Requested (not waited for), Succeeded, Refused or TimedOut.
	Outcome string `json:"outcome"`
	Message string `json:"message"`
	// Next is what a person can do about an outcome that is not the wanted one.
	Next string `json:"next,omitempty"`
}

// stepReport is one step.
type stepReport struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// State is Planned, Done, or NotAllowed where this user has no right to it; the recovery succeeds without.
	State string `json:"state"`
	// Change is the object or patch that is sent, in a dry run; the key is redacted.
	Change any `json:"change,omitempty"`
}

// States of steps.
const (
	stepPlanned = "Planned"
	stepDone    = "Done"
	stepLeft    = "NotAllowed"
)

func (op *recoverKeyringOp) recoveryReport(r *recovery, due []recoveryStep) *recoveryReport {
	rep := op.bareReport()
	rep.Secret, rep.Version, rep.Digest = r.status.KeyringSecret, r.status.KeyringVersion, r.status.KeyringDigest
	for _, s := range due {
		rep.Steps = append(rep.Steps, stepReport{Name: s.name, Text: s.text(r), State: stepPlanned})
	}
	return rep
}

// bareReport is what is known before anything was looked at.
func (op *recoverKeyringOp) bareReport() *recoveryReport {
	return &recoveryReport{
		APIVersion: report.APIVersion, Kind: "MfgRecoveryReport", Metadata: report.Metadata{Name: op.Group, Namespace: op.Namespace},
		Verb: "recover-keyring", Site: op.Site, Steps: []stepReport{},
	}
}

func (r *recovery) plan(due []recoveryStep) []planLine {
	st := r.status
	now := fmt.Sprintf("%s is missing; the only copy of it is in the memory of the pod of %s", st.KeyringSecret, st.Name)
	if r.secret != nil {
		now = fmt.Sprintf("%s is there; what is left to do is below", st.KeyringSecret)
	}
	lines := []planLine{
		{"Now", now},
		{"After", fmt.Sprintf("%s is in escrow again with %s, as the operator made it, and %s is Sealed", st.KeyringSecret, st.KeyringDigest, st.Name)},
		{"Meanwhile", "do not delete, restart, evict or drain the pod of " + st.Name + " (file " + keyrings.File(r.group) + ")"},
	}
	for i, s := range due {
		lines = append(lines, planLine{fmt.Sprintf("Step %d", i+1), s.name + ": " + s.text(r)})
	}
	if len(r.lacking) > 0 {
		lines = append(lines, planLine{"Rights", "you cannot carry it out, you have no right to: " + strings.Join(r.lacking, ", ")})
	}
	if r.unseen {
		lines = append(lines, planLine{"Unseen", "you may not list pods: whether the pod still runs was not looked at"})
	}
	return append(lines, planLine{"Undo", "none is needed: neither the pod nor its data is touched"})
}

// finishRecovery writes the outcome.
func (op *recoverKeyringOp) finishRecovery(env Environment, rep *recoveryReport) (int, error) {
	if op.Output.printer != nil {
		return exitHealthy, op.Output.print(env.Out, rep)
	}
	if err := showChanges(env, rep); err != nil {
		return exitError, err
	}
	fmt.Fprintln(env.Out, rep.Message)
	return exitHealthy, nil
}
