// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/progress"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Create is `kubectl mfg backup create`.
type Create struct {
	Common
	Group   string
	Profile string
	Method  string
	Name    string
}

// Methods are the values of --method.
var Methods = []string{string(v1alpha1.BackupLogical), string(v1alpha1.BackupPhysical)}

// nameMost is the longest name of a backup, as in the definition of MysqlBackup.
const nameMost = 56

var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// Validate checks only the command line.
func (op *Create) Validate() error {
	switch {
	case op.Method != "" && !slices.Contains(Methods, op.Method):
		return fmt.Errorf("--method must be one of %s", strings.Join(Methods, ", "))
	case op.Name != "" && (len(op.Name) > nameMost || !nameForm.MatchString(op.Name)):
		return fmt.Errorf("--name %q cannot be the name of a backup: at most %d lower-case letters, digits and '-'", op.Name, nameMost)
	}
	return op.Common.Validate()
}

// Run asks for the backup, and follows it.
func (op *Create) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	profile, err := op.profile(g)
	if err != nil {
		return cli.ExitError, err
	}
	b := &v1alpha1.MysqlBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: cmp.Or(op.Name, onDemand(op.Group, profile.Name, env.Now())), Labels: map[string]string{
			v1alpha1.LabelGroup: op.Group, v1alpha1.LabelBackupProfile: profile.Name}},
		Spec: v1alpha1.MysqlBackupSpec{Group: op.Group, Profile: profile.Name, Method: v1alpha1.BackupMethod(op.Method)},
	}
	made, err := c.CreateBackup(ctx, b)
	switch {
	case apierrors.IsAlreadyExists(err):
		return cli.ExitError, cli.Refused("refused: there is a backup %s already, and none is overwritten\n  choose another --name, or see it: %s", b.Name, show(op.Namespace, b.Name))
	case apierrors.IsInvalid(err):
		return cli.ExitError, cli.Refused("refused by the API server: %s", cli.FirstLine(err))
	case err != nil:
		return cli.ExitError, err
	}
	op.note(made)
	if !op.Wait {
		return op.finish(env, cli.OutcomeRequested, fmt.Sprintf("asked for backup %s; see how far it is: %s", made.Name, show(op.Namespace, made.Name)))
	}
	if op.Output.Printer == nil {
		fmt.Fprintf(env.ErrOut, "Backup %s of %s by profile %s (%s, to %s)\n", made.Name, op.Group, profile.Name, cmp.Or(op.Method, string(profile.Method), Methods[0]), report.StorageWords(profile.Storage))
	}
	return op.follow(ctx, env, c, made)
}

// profile returns the profile to use. It refuses what the operator would refuse, before any request.
func (op *Create) profile(g *v1alpha1.MysqlFailoverGroup) (*v1alpha1.BackupProfile, error) {
	var all []v1alpha1.BackupProfile
	if g.Spec.Backup != nil {
		all = g.Spec.Backup.Profiles
	}
	names := make([]string, 0, len(all))
	for _, p := range all {
		names = append(names, p.Name)
	}
	switch at := slices.Index(names, op.Profile); {
	case len(all) == 0:
		return nil, cli.Refused("refused: %s has no backup profile (spec.backup.profiles), so there is no place for a backup\n  docs/backups.md has profiles to begin with: kubectl edit mysqlfailovergroup %s -n %s", op.Group, op.Group, op.Namespace)
	case op.Profile == "" && len(all) > 1:
		return nil, cli.Usage("%s has several profiles: choose one with --profile: %s", op.Group, strings.Join(names, ", "))
	case op.Profile != "" && at < 0:
		return nil, cli.Usage("%s has no profile %q; its profiles are %s", op.Group, op.Profile, strings.Join(names, ", "))
	default:
		p := &all[max(0, at)]
		return p, op.allowed(g, p)
	}
}

// allowed refuses a copy of an encrypted group that anyone could open: its keyring travels in it.
func (op *Create) allowed(g *v1alpha1.MysqlFailoverGroup, p *v1alpha1.BackupProfile) error {
	method := v1alpha1.BackupMethod(cmp.Or(op.Method, string(p.Method)))
	encrypted := g.Spec.EncryptionAtRest != nil && g.Spec.EncryptionAtRest.Enabled
	switch {
	case g.DeletionTimestamp != nil:
		return cli.Refused("refused: %s is being deleted", op.Group)
	case method == v1alpha1.BackupPhysical && encrypted && p.Encryption == nil:
		return cli.Refused("refused: a Physical backup of an encrypted group holds its keyring, and would give it to everybody who reads the bucket\n  set encryption.recipients in profile %s (kubectl mfg backup keygen makes a key), or take --method Logical", p.Name)
	}
	return nil
}

// onDemand returns a name for a backup that a person asks for: to the second, so that two within a minute have two names.
func onDemand(group, profile string, now time.Time) string {
	when := "-" + now.UTC().Format("20060102-150405")
	head := group + "-" + profile
	return strings.TrimRight(head[:min(len(head), nameMost-len(when))], "-") + when
}

func (op *Create) follow(ctx context.Context, env cli.Environment, c Cluster, made *v1alpha1.MysqlBackup) (int, error) {
	began := env.Now()
	w := watcher{op: &op.Common, env: env, c: c, name: made.Name, tell: progress.New(env, op.Output),
		goesOn: "the backup continues; to stop it: kubectl mfg backup delete " + made.Name + " -n " + op.Namespace,
		task:   v1alpha1.TaskBackup, words: func(b *v1alpha1.MysqlBackup) string {
			if b.Status.Phase == "" && env.Now().Sub(began) >= untaken {
				return unheard()
			}
			return phaseWords(b)
		}}
	b, err := w.follow(ctx, func(b *v1alpha1.MysqlBackup) bool {
		return b.UID != made.UID || b.DeletionTimestamp != nil || slices.Contains([]v1alpha1.BackupPhase{v1alpha1.BackupCompleted, v1alpha1.BackupFailed, v1alpha1.BackupDeleting}, b.Status.Phase)
	})
	switch {
	case apierrors.IsNotFound(err), err == nil && (b.UID != made.UID || b.DeletionTimestamp != nil || b.Status.Phase == v1alpha1.BackupDeleting):
		return cli.ExitError, cli.Refused("backup %s was deleted before it was done", made.Name)
	case err != nil:
		return cli.ExitError, err
	case b.Status.Phase == v1alpha1.BackupFailed:
		return cli.ExitError, failed(b)
	}
	return op.finish(env, cli.OutcomeDone, op.completed(env, began))
}

// completed says what exists now, and what to do with it.
func (op *Create) completed(env cli.Environment, began time.Time) string {
	r := *op.rep
	took := env.Now().Sub(began)
	if r.StartedAt != nil && r.FinishedAt != nil {
		took = r.FinishedAt.Sub(*r.StartedAt)
	}
	words := fmt.Sprintf("backup %s is complete: %s from %s in %s", r.Metadata.Name, cmp.Or(r.Size, "its size is not known"), cli.OrNoSite(r.Site), duration.HumanDuration(took))
	if r.Encrypted {
		words += ", encrypted"
	}
	if r.Verified == nil {
		words += fmt.Sprintf("\n  to verify it, which restores it into a scratch server: kubectl mfg backup verify %s %s -n %s", r.Group, r.Metadata.Name, r.Metadata.Namespace)
	}
	return words
}

// failed returns the reason with the way out.
func failed(b *v1alpha1.MysqlBackup) error {
	message := cmp.Or(b.Status.Message, "the operator does not say why")
	return &cli.Error{Code: cli.ExitRefused, Reason: b.Status.Reason,
		Err: fmt.Errorf("backup %s failed (%s): %s\n  %s", b.Name, cmp.Or(b.Status.Reason, v1alpha1.ReasonBackupFailed), message, wayOut(b))}
}

// wayOut says what to do about a failed backup. The message has the particulars.
func wayOut(b *v1alpha1.MysqlBackup) string {
	switch b.Status.Reason { //nolint:exhaustive // the others share one way out
	case v1alpha1.ReasonBackupProfileMissing:
		return fmt.Sprintf("see which profiles there are: kubectl get mysqlfailovergroup %s -n %s -o jsonpath='{.spec.backup.profiles[*].name}'", b.Spec.Group, b.Namespace)
	case v1alpha1.ReasonNoBackupSource, v1alpha1.ReasonBackupTooLate:
		return fmt.Sprintf("see how the sites are, and which of them source.prefer and source.maxLag of the profile allow: kubectl mfg status %s -n %s", b.Spec.Group, b.Namespace)
	case v1alpha1.ReasonBackupTimedOut:
		return fmt.Sprintf("raise timeout of profile %s, or see what is slow: kubectl mfg doctor %s -n %s", b.Spec.Profile, b.Spec.Group, b.Namespace)
	}
	return fmt.Sprintf("see what is wrong around it: kubectl mfg doctor %s -n %s; the log, while the pod is kept: kubectl logs -n %s job/%s", b.Spec.Group, b.Namespace, b.Namespace, v1alpha1.BackupJob(b.Name))
}
