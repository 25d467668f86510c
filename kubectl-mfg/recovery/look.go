// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// recovery is one run of recover-keyring.
type recovery struct {
	op      *Op
	env     cli.Environment
	cluster Cluster
	began   time.Time

	group  *v1alpha1.MysqlFailoverGroup
	status v1alpha1.SiteKeyringStatus
	// at is the site's place in the list of status.
	at int
	// secret is the object with the name that status gives; nil if there is none.
	secret *corev1.Secret
	// unrecorded is true if an earlier run made the Secret, and no event tells of it yet.
	unrecorded bool
	// content is the keyring, between the step that reads it and the one that stores it.
	content keyBytes
	// left are steps, or parts of them, that this user may not do, with the reason.
	left map[string]string
	// lacking are rights that this user does not have, in a dry run that sends nothing; unseen is true if the user may not
	// look at the pods.
	lacking []string
	unseen  bool
}

// look reads what exists, and refuses what cannot be helped or is no case for this verb.
func (r *recovery) look(ctx context.Context) error {
	g, err := r.cluster.Group(ctx, r.op.Namespace, r.op.Group)
	if err != nil {
		return err
	}
	r.group = g
	if err := r.allowed(); err != nil {
		return err
	}
	if err := r.readSecret(ctx); err != nil {
		return err
	}
	if r.secret != nil && r.wrong() && !r.removable() {
		return r.foreign()
	}
	if r.secret == nil || !r.ours() || r.env.Now().Sub(r.secret.CreationTimestamp.Time) > eventsKept {
		return nil
	}
	_, err = r.cluster.Kube().CoreV1().Events(r.op.Namespace).Get(ctx, r.eventName(), metav1.GetOptions{})
	// A user who may not look whether it exists can record it again: it then has the same name.
	r.unrecorded = err != nil && ctx.Err() == nil
	return nil
}

// eventsKept is how long Kubernetes keeps events by default: one that is missing after that may have existed.
const eventsKept = time.Hour

func (r *recovery) allowed() error {
	op, g := r.op, r.group
	if e := g.Spec.EncryptionAtRest; e == nil || !e.Enabled || g.Status.EncryptionAtRest == nil {
		return cli.Refused("refused: %s is not encrypted, so it has no keyrings", op.Group)
	}
	if _, known := request.RoleOf(g, op.Site); !known {
		return cli.Refused("refused: %s has no site %q; its sites are %s", op.Group, op.Site, request.SiteNames(g))
	}
	r.status, r.at, _ = keyrings.StatusOf(g, op.Site)
	st := r.status
	switch {
	case keyrings.Writable(st) && st.Phase == v1alpha1.KeyringFailed:
		return cli.Refused("refused: the keyring of %s is not sealed: it failed, for a %s: %s\n  see all keyrings: kubectl mfg keyring list %s -n %s",
			op.Site, strings.ToLower(string(st.Work)), st.Message, op.Group, op.Namespace)
	case keyrings.Writable(st):
		return cli.Refused("refused: the keyring of %s is not sealed: it is %s, for a %s, and its pod puts it into escrow; no Secret is missing\n  see how far it is: kubectl mfg keyring list %s -n %s",
			op.Site, strings.ToLower(string(st.Phase)), strings.ToLower(string(st.Work)), op.Group, op.Namespace)
	case st.KeyringSecret == "" || st.KeyringDigest == "" || st.KeyringVersion < 1:
		return cli.Refused("refused: status does not say which keyring %s needs, so that nothing could be checked\n  see what is known: kubectl mfg keyring list %s -n %s -o yaml", op.Site, op.Group, op.Namespace)
	case g.DeletionTimestamp != nil && g.Spec.DeletionPolicy == v1alpha1.DeletionDelete:
		return cli.Refused("refused: %s is being deleted, with its data and its keyrings (deletionPolicy Delete)", op.Group)
	}
	return nil
}

// readSecret looks at the object with the name that status gives.
func (r *recovery) readSecret(ctx context.Context) error {
	name := r.status.KeyringSecret
	s, err := r.cluster.Kube().CoreV1().Secrets(r.op.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.secret = nil
		return nil
	case err != nil:
		return cli.RightsHint(err, "get", "secrets/"+name, r.op.Namespace)
	case s.DeletionTimestamp != nil:
		return cli.Refused("refused: %s is being deleted and has finalizers: it must be gone before it can be made again\n  see what holds it: kubectl get secret %s -n %s -o jsonpath='{.metadata.finalizers}'", name, name, r.op.Namespace)
	}
	r.secret = s
	return nil
}

// wrong is true if the existing Secret does not hold the missing keyring.
func (r *recovery) wrong() bool { return keyrings.Digest(r.secret) != r.status.KeyringDigest }

// ours is true if this verb made the Secret.
func (r *recovery) ours() bool { return keyrings.MadeBy(r.secret, cli.FieldManager) }

// removable is true if it may be removed again: what is in escrow belongs only to the operator.
func (r *recovery) removable() bool { return r.ours() && !keyrings.InEscrow(r.secret) }

// foreign refuses if a Secret that is not ours has the name. It may be the last copy of something.
func (r *recovery) foreign() error {
	name, ns := r.status.KeyringSecret, r.op.Namespace
	return cli.Refused(`refused: %s is there and holds %s, but %s is missing. It was not made by this command, so it is not touched
  if it was restored by mistake, delete it and run this again: kubectl label secret %s -n %s %s=true && kubectl delete secret %s -n %s`,
		name, cli.OrNoSite(keyrings.Digest(r.secret)), r.status.KeyringDigest, name, ns, v1alpha1.LabelAllowDeletion, name, ns)
}

// right is something that a person must be allowed to do.
type right struct{ verb, group, resource, subresource, name string }

// String is the right as people write it.
func (r right) String() string {
	words := r.verb + " " + r.resource
	if r.group != "" {
		words += "." + r.group
	}
	if r.subresource != "" {
		words += "/" + r.subresource
	}
	if r.name != "" {
		words += " " + r.name
	}
	return words
}

// mayCarryOut checks all rights beforehand: a user who may make the Secret but not remove it again must not begin. To see
// only the plan takes none of them.
func (r *recovery) mayCarryOut(ctx context.Context, due []recoveryStep) error {
	var missing []string
	for _, step := range due {
		for _, need := range step.needs(r) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.op.Namespace, Verb: need.verb, Group: need.group,
					Resource: need.resource, Subresource: need.subresource, Name: need.name},
			}}
			answer, err := r.cluster.Kube().AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				missing = append(missing, need.String())
			}
		}
	}
	if ctx.Err() != nil {
		return cli.NotConfirmed("interrupted: nothing was changed")
	}
	if r.op.DryRun == request.DryRunClient {
		r.lacking = missing
		return nil
	}
	if len(missing) > 0 {
		return fmt.Errorf("you have no right to: %s (namespace %s); nothing was changed\n  ask a person who has it, or see what you may do: kubectl auth can-i --list -n %s",
			strings.Join(missing, ", "), r.op.Namespace, r.op.Namespace)
	}
	return nil
}
