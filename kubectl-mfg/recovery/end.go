// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// secret is short for the type that most of this is about.
type secret = corev1.Secret

// seal patches the phase, as the specification says. The operator may be faster, and continues without it.
func (r *recovery) seal(ctx context.Context) error {
	for try := 1; ; try++ {
		err := patchStatus(ctx, r.cluster, r.group, keyrings.SealedPatch(r.status, r.at), false)
		switch {
		case err == nil:
			return nil
		case apierrors.IsForbidden(err):
			// Only an admin may change status; the digest of the restored keyring is enough for the operator.
			r.left[stepPhase] = "the operator sets it; your patch was refused: " + err.Error()
			return nil
		case !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) || try == request.PatchTries:
			return cli.RightsHint(err, "patch", cli.Resource+"."+v1alpha1.GroupVersion.Group+"/status", r.op.Namespace)
		}
		// Status has changed: look again, and patch only if it is still Failed because this very keyring is missing.
		g, err := r.cluster.Group(ctx, r.op.Namespace, r.op.Group)
		if err != nil {
			return err
		}
		was := r.status
		r.group = g
		if r.status, r.at, _ = keyrings.StatusOf(g, r.op.Site); r.status.KeyringSecret != was.KeyringSecret || r.status.KeyringDigest != was.KeyringDigest {
			return cli.Refused("stopped: status names %s with %s now, and before %s with %s: a person or a program changes it\n  see what is known: kubectl mfg keyring verify %s -n %s",
				r.status.KeyringSecret, r.status.KeyringDigest, was.KeyringSecret, was.KeyringDigest, r.op.Group, r.op.Namespace)
		}
		if !patchable(r) {
			return nil
		}
		if !r.env.Wait(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// await waits for the operator's own word, and for the parts left to it.
func (r *recovery) await(ctx context.Context) error {
	_, err := r.op.Follow(ctx, r.env, r.cluster, func(g *v1alpha1.MysqlFailoverGroup) bool {
		st, _, _ := keyrings.StatusOf(g, r.op.Site)
		if !settledAsSealed(st) {
			return false
		}
		s, err := r.cluster.Kube().CoreV1().Secrets(r.op.Namespace).Get(ctx, r.status.KeyringSecret, metav1.GetOptions{})
		if err != nil {
			return false
		}
		want := keyrings.Secret(g, r.status, nil)
		return keyrings.Digest(s) == r.status.KeyringDigest && len(keyrings.Lacks(want, s)) == 0
	})
	return err
}

// eventName returns the same name for the same Secret: a second run records nothing twice.
func (r *recovery) eventName() string {
	return fmt.Sprintf("%s.keyring-%s", r.op.Group, r.secret.UID)
}

// event returns the event about the recovery.
func (r *recovery) event() *corev1.Event {
	now := metav1.NewTime(r.env.Now())
	e := &corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.op.Namespace, Name: r.op.Group + ".keyring"},
		InvolvedObject: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MysqlFailoverGroup",
			Namespace: r.op.Namespace, Name: r.op.Group, UID: r.group.UID},
		Type: corev1.EventTypeNormal, Reason: string(v1alpha1.ReasonKeyringRecovered),
		Message: fmt.Sprintf("The escrow Secret %s of site %s was restored by kubectl mfg recover-keyring: its content has the digest that status names, %s",
			r.status.KeyringSecret, r.op.Site, r.status.KeyringDigest),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: cli.FieldManager}, ReportingController: cli.FieldManager,
	}
	if r.secret != nil {
		e.Name = r.eventName()
	}
	return e
}

// record writes the event. If that fails, the recovery itself is still done.
func (r *recovery) record(ctx context.Context) error {
	_, err := r.cluster.Kube().CoreV1().Events(r.op.Namespace).Create(ctx, r.event(), metav1.CreateOptions{FieldManager: cli.FieldManager})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case apierrors.IsForbidden(err):
		r.left[stepRecord] = "no event was recorded, you may not: " + err.Error()
		return nil
	}
	return cli.RightsHint(err, "create", "events", r.op.Namespace)
}

// rehearse fills in what would be sent. With --dry-run=server it reads and compares the keyring, and the API server
// says what it thinks of each change.
func (r *recovery) rehearse(ctx context.Context, due []recoveryStep, rep *Report) error {
	defer r.content.forget()
	server := r.op.DryRun == request.DryRunServer
	rep.DryRun, rep.Outcome, rep.Message = r.op.DryRun, cli.OutcomePlanned, "Dry run: nothing was sent, and the keyring was not read"
	if server {
		rep.Message = "Dry run: the API server would take every change; nothing was changed"
	}
	for i, s := range due {
		change, try := r.change(s.name)
		rep.Steps[i].Change = change
		if s.name == stepCompare {
			try = r.compare
		}
		if !server || try == nil {
			continue
		}
		if err := try(ctx); err != nil {
			return fmt.Errorf("step %s: %w", s.name, err)
		}
	}
	return nil
}

// change returns what a step would send, redacted, and how to let the API server check it.
func (r *recovery) change(step string) (shown any, try func(context.Context) error) {
	kube, want := r.cluster.Kube().CoreV1(), keyrings.Secret(r.group, r.status, nil)
	switch step {
	case stepCreate:
		return keyrings.Redacted(keyrings.Bare(r.group, r.status, nil), r.status.KeyringDigest), func(ctx context.Context) error {
			// A dry run keeps nothing that could be patched later: all of it is checked at once.
			whole := keyrings.Secret(r.group, r.status, r.content.content)
			_, err := kube.Secrets(r.op.Namespace).Create(ctx, whole, metav1.CreateOptions{FieldManager: cli.FieldManager, DryRun: dryRunOption(true)})
			return orRights(err, "create", "secrets", r.op.Namespace)
		}
	case stepProtect:
		if r.secret == nil {
			return keyrings.Completion(want, keyrings.Bare(r.group, r.status, nil), true), nil
		}
		patch := keyrings.Completion(want, r.secret, true)
		if r.wrong() {
			return patch, nil // it would be deleted first
		}
		return patch, func(ctx context.Context) error {
			return orRights(r.patchSecret(ctx, patch, true), "patch", "secrets/"+r.status.KeyringSecret, r.op.Namespace)
		}
	case stepPhase:
		patch := keyrings.SealedPatch(r.status, r.at)
		return patch, func(ctx context.Context) error {
			return orRights(patchStatus(ctx, r.cluster, r.group, patch, true), "patch", cli.Resource+"/status", r.op.Namespace)
		}
	case stepRecord:
		return r.event(), func(ctx context.Context) error {
			_, err := kube.Events(r.op.Namespace).Create(ctx, r.event(), metav1.CreateOptions{FieldManager: cli.FieldManager, DryRun: dryRunOption(true)})
			return orRights(err, "create", "events", r.op.Namespace)
		}
	}
	return nil, nil
}

func orRights(err error, verb, what, namespace string) error {
	if err == nil {
		return nil
	}
	return cli.RightsHint(err, verb, what, namespace)
}
