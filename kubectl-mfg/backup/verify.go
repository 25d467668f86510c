// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/progress"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Verify is `kubectl mfg backup verify`.
type Verify struct {
	Common
	Group string
	// Name is empty for the newest backup, of Profile if that is set.
	Name    string
	Profile string
}

// annotateTries is how often an annotation is tried again after another writer changed the backup: the operator writes its status.
const annotateTries = 8

// Run asks for the verification, and follows it.
func (op *Verify) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	b, err := op.backup(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	op.note(b)
	if err := op.allowed(ctx, c, b); err != nil {
		return cli.ExitError, err
	}
	before := b.Status.Verified
	if b, err = op.ask(ctx, env, c, b); err != nil {
		return cli.ExitError, err
	}
	op.note(b)
	if !op.Wait {
		return op.finish(env, cli.OutcomeRequested, fmt.Sprintf("asked for; see how far it is: %s", show(op.Namespace, b.Name)))
	}
	return op.follow(ctx, env, c, b, before)
}

// backup returns the backup to verify.
func (op *Verify) backup(ctx context.Context, c Cluster) (*v1alpha1.MysqlBackup, error) {
	if op.Name != "" {
		return named(ctx, c, op.Namespace, op.Group, op.Name)
	}
	all, err := c.Backups(ctx, op.Namespace, op.Group)
	if err != nil {
		return nil, err
	}
	newest, found := report.NewBackupList(all).Newest(op.Profile)
	if !found {
		of := op.Group
		if op.Profile != "" {
			of += " by profile " + op.Profile
		}
		return nil, cli.Refused("refused: there is no completed backup of %s to verify\n  list those that there are: kubectl mfg backup list %s -n %s", of, op.Group, op.Namespace)
	}
	return c.Backup(ctx, op.Namespace, newest.Metadata.Name)
}

// allowed refuses what cannot be verified.
func (op *Verify) allowed(ctx context.Context, c Cluster, b *v1alpha1.MysqlBackup) error {
	if b.Status.Phase != v1alpha1.BackupCompleted || b.DeletionTimestamp != nil {
		return cli.Refused("refused: backup %s is %s, and only one that is Completed can be verified\n  see why: %s", b.Name, cmp.Or(b.Status.Phase, v1alpha1.BackupPending), show(op.Namespace, b.Name))
	}
	if !b.Status.Encrypted {
		return nil
	}
	g, err := c.Group(ctx, op.Namespace, b.Spec.Group)
	if err != nil {
		return err
	}
	if g.Spec.Backup != nil {
		for _, p := range g.Spec.Backup.Profiles {
			if p.Name == b.Spec.Profile && p.Encryption != nil && p.Encryption.IdentitySecretName != "" {
				return nil
			}
		}
	}
	return cli.Refused("refused: backup %s is encrypted, and its profile %s names no identity that opens it\n  set encryption.identitySecretName there; kubectl mfg backup keygen --help says how the Secret is made", b.Name, b.Spec.Profile)
}

// ask sets the annotation. If a person has set it already, it joins that, unless that one waits: a new order is tried at once. It joins no order of a
// schedule: the operator takes those back for a newer backup, and would leave this command without an outcome.
func (op *Verify) ask(ctx context.Context, env cli.Environment, c Cluster, b *v1alpha1.MysqlBackup) (*v1alpha1.MysqlBackup, error) {
	for try := 1; ; try++ {
		if order := b.Annotations[v1alpha1.AnnotationVerifyBackup]; order != "" && order != v1alpha1.VerifyBySchedule && b.Status.VerificationWaits == nil {
			return b, nil
		}
		asked, err := c.AnnotateBackup(ctx, b, map[string]string{v1alpha1.AnnotationVerifyBackup: env.Now().UTC().Format(time.RFC3339)})
		if err == nil {
			return asked, nil
		}
		if !apierrors.IsConflict(err) || try == annotateTries {
			return nil, err
		}
		if !env.Wait(ctx, 20*time.Millisecond) {
			return nil, cli.NotConfirmed("interrupted: nothing was changed")
		}
		if b, err = c.Backup(ctx, op.Namespace, b.Name); err != nil {
			return nil, err
		}
	}
}

func (op *Verify) follow(ctx context.Context, env cli.Environment, c Cluster, asked *v1alpha1.MysqlBackup, before *v1alpha1.BackupVerified) (int, error) {
	w := watcher{op: &op.Common, env: env, c: c, name: asked.Name, tell: progress.New(env, op.Output), goesOn: "the verification continues",
		task: v1alpha1.TaskVerify, words: func(b *v1alpha1.MysqlBackup) string {
			if waits := b.Status.VerificationWaits; waits != nil && waits.Order == b.Annotations[v1alpha1.AnnotationVerifyBackup] {
				return "the verification of backup " + b.Name + " is tried again: " + waits.Message
			}
			return "backup " + b.Name + " is restored into a scratch server and checked"
		}}
	b, err := w.follow(ctx, func(b *v1alpha1.MysqlBackup) bool {
		_, stands := b.Annotations[v1alpha1.AnnotationVerifyBackup]
		return !stands || b.DeletionTimestamp != nil
	})
	switch {
	case apierrors.IsNotFound(err), err == nil && b.DeletionTimestamp != nil:
		return cli.ExitError, cli.Refused("backup %s was deleted before it was verified", asked.Name)
	case err != nil:
		return cli.ExitError, err
	case !newer(b.Status.Verified, before):
		return cli.ExitError, &cli.Error{Code: cli.ExitRefused, Reason: b.Status.Reason, Err: fmt.Errorf("backup %s was not verified: %s\n  see what is wrong around it: kubectl mfg doctor %s -n %s",
			b.Name, cmp.Or(b.Status.Message, "the operator took the request off without an outcome"), b.Spec.Group, b.Namespace)}
	case b.Status.Verified.Outcome != v1alpha1.BackupPassed:
		return cli.ExitError, &cli.Error{Code: cli.ExitRefused, Err: fmt.Errorf("backup %s could not be restored: %s\n  take another one, and keep this one to look into it: kubectl mfg backup create %s --profile %s -n %s",
			b.Name, cmp.Or(b.Status.Verified.Message, "the operator does not say why"), b.Spec.Group, b.Spec.Profile, b.Namespace)}
	}
	words := fmt.Sprintf("backup %s is verified: it was restored and checked", b.Name)
	if s := b.Status.Verified.RestoreSeconds; s > 0 {
		words += ", the restore took " + duration.HumanDuration(time.Duration(s)*time.Second)
	}
	return op.finish(env, cli.OutcomeDone, words)
}

// newer is true if there is a new outcome.
func newer(now, before *v1alpha1.BackupVerified) bool {
	switch {
	case now == nil:
		return false
	case before == nil:
		return true
	case now.At == nil || before.At == nil:
		return now.Outcome != before.Outcome || now.Message != before.Message
	}
	return now.At.After(before.At.Time)
}
