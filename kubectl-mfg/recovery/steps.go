// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// recoveryStep is one step of the specification's procedure.
type recoveryStep struct {
	name string
	// due looks at what exists.
	due  func(*recovery) bool
	text func(*recovery) string
	// needs are the rights without which it must not begin.
	needs func(*recovery) []right
	do    func(*recovery, context.Context) error
}

// Names of the steps, for reports and people.
const (
	stepCompare = "compare"
	stepCreate  = "create"
	stepVerify  = "verify"
	stepProtect = "protect"
	stepPhase   = "phase"
	stepWait    = "wait"
	stepRecord  = "record"
)

// recoverySteps come in the order of the specification.
var recoverySteps = []recoveryStep{
	{stepCompare, missing, compareText, compareNeeds, (*recovery).compare},
	{stepCreate, missing, createText, createNeeds, (*recovery).create},
	{stepVerify, unprotected, verifyText, verifyNeeds, (*recovery).verify},
	{stepProtect, unprotected, protectText, protectNeeds, (*recovery).protect},
	{stepPhase, patchable, phaseText, noNeeds, (*recovery).seal},
	{stepWait, unsettled, waitText, noNeeds, (*recovery).await},
	{stepRecord, unrecorded, recordText, noNeeds, (*recovery).record},
}

func noNeeds(*recovery) []right { return nil }

// due returns the steps that are left.
func (r *recovery) due() []recoveryStep {
	var out []recoveryStep
	for _, s := range recoverySteps {
		if s.due(r) {
			out = append(out, s)
		}
	}
	return out
}

func missing(r *recovery) bool { return r.secret == nil }

func unprotected(r *recovery) bool {
	return missing(r) || r.wrong() || len(keyrings.Lacks(keyrings.Secret(r.group, r.status, nil), r.secret)) > 0
}

// patchable is true if, by the specification, a person patches the phase. A site that was about to be sealed continues
// from Escrowed on its own: Sealed would skip the proof that its pod is (I16).
func patchable(r *recovery) bool {
	return r.status.Phase == v1alpha1.KeyringFailed && r.status.Work == "" && r.status.Stage != v1alpha1.KeyringSealing
}

func unsettled(r *recovery) bool {
	return r.group.DeletionTimestamp == nil && (unprotected(r) || !settledAsSealed(r.status))
}

// settledAsSealed is true once the operator has looked: it has nothing to say of a site that is sealed.
func settledAsSealed(st v1alpha1.SiteKeyringStatus) bool {
	return st.Phase == v1alpha1.KeyringSealed && st.Message == ""
}

func unrecorded(r *recovery) bool { return r.unrecorded || unprotected(r) }

func compareText(r *recovery) string {
	return fmt.Sprintf("read %s from the running container %s, into memory only; go on only if it has the digest %s", keyrings.File(r.group), pods.ContainerMySQL, r.status.KeyringDigest)
}

func createText(r *recovery) string {
	return fmt.Sprintf("create Secret %s with it, without labels yet", r.status.KeyringSecret)
}

func verifyText(r *recovery) string {
	return fmt.Sprintf("read %s back and hash it again; delete it and stop if the digest differs", r.status.KeyringSecret)
}

func protectText(r *recovery) string {
	return fmt.Sprintf("label and annotate %s, make it immutable, and make the group its owner", r.status.KeyringSecret)
}

func phaseText(r *recovery) string {
	return fmt.Sprintf("patch the phase of %s in the group's status from Failed to Sealed", r.op.Site)
}

func waitText(r *recovery) string {
	return fmt.Sprintf("wait until the operator says that %s is Sealed", r.op.Site)
}

func recordText(*recovery) string {
	return "record an event " + string(v1alpha1.ReasonKeyringRecovered) + " on the group"
}

func compareNeeds(*recovery) []right {
	return []right{{verb: "list", resource: "pods"}, {verb: "create", resource: "pods", subresource: "exec"}}
}

func createNeeds(*recovery) []right { return []right{{verb: "create", resource: "secrets"}} }

func verifyNeeds(r *recovery) []right {
	return []right{{verb: "delete", resource: "secrets", name: r.status.KeyringSecret}}
}

func protectNeeds(r *recovery) []right {
	return []right{{verb: "patch", resource: "secrets", name: r.status.KeyringSecret}}
}

// carryOut does what is due, and reports each finished step.
func (r *recovery) carryOut(ctx context.Context, due []recoveryStep, rep *Report) error {
	defer r.content.forget()
	r.left = map[string]string{}
	rep.Outcome = cli.OutcomeDone
	rep.Message = fmt.Sprintf("%s is in escrow again with %s, and %s is Sealed.", r.status.KeyringSecret, r.status.KeyringDigest, r.op.Site)
	for i, s := range due {
		if s.name == stepWait && !r.op.Wait {
			rep.Outcome = cli.OutcomeRequested
			rep.Message = fmt.Sprintf("%s is in escrow again; see how the site gets Sealed: kubectl mfg keyring list %s -n %s", r.status.KeyringSecret, r.op.Group, r.op.Namespace)
			continue
		}
		if err := s.do(r, ctx); err != nil {
			return r.stopped(ctx, s.name, err)
		}
		rep.Steps[i].State = stepDone
		if why, is := r.left[s.name]; is {
			rep.Steps[i].State = stepLeft
			r.say("%s: %s", s.name, why)
			continue
		}
		r.say("%s: done", s.name)
	}
	return nil
}

func (r *recovery) say(format string, args ...any) {
	fmt.Fprintf(r.env.ErrOut, "%6.1fs  %s\n", r.env.Now().Sub(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// stopped says what to do if a step did not finish.
func (r *recovery) stopped(ctx context.Context, step string, err error) error {
	again := fmt.Sprintf("Do not delete or restart the pod of %s\n  run it again, and it continues from there: kubectl mfg recover-keyring %s %s -n %s", r.op.Site, r.op.Group, r.op.Site, r.op.Namespace)
	var own *cli.Error
	switch {
	case errors.As(err, &own) && own.Ended != "":
		return cli.WaitedOut("%s at step %s: the Secret is there, but it was not seen that %s is Sealed, and no event was recorded. %s", own.Ended, step, r.op.Site, again)
	case errors.As(err, &own):
		return err
	case ctx.Err() != nil:
		return cli.WaitedOut("interrupted at step %s. %s", step, again)
	}
	return fmt.Errorf("step %s: %w\n  %s", step, err, again)
}

// create stores the keyring under the name that is missing.
func (r *recovery) create(ctx context.Context) error {
	made, err := r.cluster.Kube().CoreV1().Secrets(r.op.Namespace).Create(ctx, keyrings.Bare(r.group, r.status, r.content.content), metav1.CreateOptions{FieldManager: cli.FieldManager})
	r.content.forget()
	if apierrors.IsAlreadyExists(err) {
		return nil // another writer was faster; the next step looks at the result
	}
	if err != nil {
		return cli.RightsHint(err, "create", "secrets", r.op.Namespace)
	}
	r.secret = made
	return nil
}

// verify reads back what is stored and hashes it. If it is wrong and ours, verify removes it again.
func (r *recovery) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
	defer cancel()
	if err := r.readSecret(ctx); err != nil {
		return err
	}
	switch {
	case r.secret == nil:
		return fmt.Errorf("%s is gone again: a person or a program deletes it", r.status.KeyringSecret)
	case !r.wrong():
		return nil
	case !r.removable():
		return r.foreign()
	}
	return r.withdraw(ctx)
}

// verifyTimeout bounds the look and, if needed, the deletion. Both also happen after Ctrl-C: a wrong keyring must not stay.
const verifyTimeout = 15 * time.Second

// withdraw deletes a Secret of ours with wrong content, if it is still the one that was read.
func (r *recovery) withdraw(ctx context.Context) error {
	s, digest := r.secret, cli.OrNoSite(keyrings.Digest(r.secret))
	err := r.cluster.Kube().CoreV1().Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return cli.Refused("%s holds %s instead of %s, and could not be deleted again: %w\n  delete it: kubectl delete secret %s -n %s", s.Name, digest, r.status.KeyringDigest, err, s.Name, s.Namespace)
	}
	return cli.Refused("stopped: %s held %s instead of %s after it was made, and was deleted again; nothing else was changed. Something changes Secrets on their way: see kubectl get mutatingwebhookconfigurations\n  then run it again: kubectl mfg recover-keyring %s %s -n %s",
		s.Name, digest, r.status.KeyringDigest, r.op.Group, r.op.Site, r.op.Namespace)
}

// protect gives the Secret all that the operator would have given it. It changes only the version that was hashed.
func (r *recovery) protect(ctx context.Context) error {
	want, owner := keyrings.Secret(r.group, r.status, nil), true
	for try := 1; ; try++ {
		patch := keyrings.Completion(want, r.secret, owner)
		if patch == nil {
			return nil
		}
		err := r.patchSecret(ctx, patch, false)
		switch {
		case err == nil:
		case apierrors.IsConflict(err) && try < request.PatchTries:
			if !r.env.Wait(ctx, 20*time.Millisecond) {
				return ctx.Err()
			}
		case apierrors.IsForbidden(err) && onlyOwner(want, r.secret, owner):
			// Only the operator changes the owner of what is in escrow; it does so on its own.
			r.left[stepProtect] = "the operator adds the owner"
			return nil
		case apierrors.IsForbidden(err) && owner && !keyrings.InEscrow(r.secret):
			owner = false // an owner may need a right of its own
			r.left[stepProtect] = "the operator adds the owner; yours was refused: " + err.Error()
			continue
		case apierrors.IsForbidden(err) && keyrings.InEscrow(r.secret):
			return cli.Refused("%s has the right content, but its labels are wrong, and it is protected: %w\n  say that you mean it, then run this again: kubectl label secret %s -n %s %s=true", r.secret.Name, err, r.secret.Name, r.op.Namespace, v1alpha1.LabelAllowDeletion)
		default:
			return cli.RightsHint(err, "patch", "secrets/"+r.status.KeyringSecret, r.op.Namespace)
		}
		// The Secret may have changed since it was hashed.
		if err := r.verify(ctx); err != nil {
			return err
		}
	}
}

func onlyOwner(want, have *secret, owner bool) bool {
	return owner && keyrings.LacksOnlyOwner(want, have)
}

func (r *recovery) patchSecret(ctx context.Context, patch map[string]any, dryRun bool) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	_, err = r.cluster.Kube().CoreV1().Secrets(r.op.Namespace).Patch(ctx, r.status.KeyringSecret, types.MergePatchType, body, metav1.PatchOptions{
		FieldManager: cli.FieldManager, DryRun: dryRunOption(dryRun),
	})
	return err
}

func dryRunOption(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
