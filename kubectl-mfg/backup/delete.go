// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/progress"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Remover is a cluster in which it can be seen what a backup is used for.
type Remover interface {
	Cluster
	// Groups lists a namespace, or all namespaces for "".
	Groups(ctx context.Context, namespace string) ([]v1alpha1.MysqlFailoverGroup, error)
}

// Delete is `kubectl mfg backup delete`.
type Delete struct {
	Common
	Group string
	Name  string
	// KeepArtifact leaves the stored data, and removes only the object.
	KeepArtifact bool
	Yes          bool

	// stays says why the operator leaves the stored data where it is; empty if it removes it.
	stays string
}

// staysThere is true if the stored data outlives the object, because somebody wants it so or because the operator cannot remove it.
func (op *Delete) staysThere() bool {
	return op.KeepArtifact || op.rep.KeepsArtifact || op.stays != ""
}

// Run asks, deletes, and follows until the backup is gone.
func (op *Delete) Run(ctx context.Context, env cli.Environment, c Remover) (int, error) {
	b, err := named(ctx, c, op.Namespace, op.Group, op.Name)
	if err != nil {
		return cli.ExitError, err
	}
	op.note(b)
	if err := op.begun(b); err != nil {
		return cli.ExitError, err
	}
	plan, err := op.survey(ctx, c, b)
	if err != nil {
		return cli.ExitError, err
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.ErrOut, screen.Plan("Delete backup "+b.Name+" (namespace "+op.Namespace+")", plan, screen.Options{Width: width}))
	if !op.Yes {
		if err := confirm(ctx, env, "Delete it?"); err != nil {
			return cli.ExitError, err
		}
		if err := op.asShown(ctx, c, b, plan); err != nil {
			return cli.ExitError, err
		}
	}
	if op.KeepArtifact {
		if b, err = op.keep(ctx, env, c, b); err != nil {
			return cli.ExitError, err
		}
	}
	if err := c.DeleteBackup(ctx, b); err != nil && !apierrors.IsNotFound(err) {
		if apierrors.IsConflict(err) {
			return cli.ExitError, cli.Refused("refused: backup %s is another one by now; nothing was deleted\n  look again: %s", b.Name, show(op.Namespace, b.Name))
		}
		return cli.ExitError, err
	}
	if !op.Wait {
		return op.finish(env, cli.OutcomeRequested, "asked for; see how far it is: "+show(op.Namespace, b.Name))
	}
	return op.follow(ctx, env, c, b)
}

// survey looks at what the backup is used for, and returns the plan. It refuses while a group is being restored from it.
func (op *Delete) survey(ctx context.Context, c Remover, b *v1alpha1.MysqlBackup) ([]screen.Line, error) {
	all, err := c.Backups(ctx, op.Namespace, b.Spec.Group)
	if err != nil {
		return nil, err
	}
	around, err := op.lookAround(ctx, c, b, all)
	if err != nil {
		return nil, err
	}
	op.stays = around.stays
	if by := around.restored; by != "" && !op.staysThere() {
		return nil, cli.Refused("refused: group %s is being restored from backup %s, and would never have all of it; nothing was deleted\n"+
			"  wait until %s has been open, or delete that group if it is not needed; to remove only the object: --keep-artifact", by, b.Name, by)
	}
	return op.plan(report.NewBackupList(all), around), nil
}

// asShown looks again after the question, over which hours may have passed. It refuses if a restore has begun, if the plan has another warning by
// now, or if it says something else of the storage. The number of other backups may change: a schedule adds some.
func (op *Delete) asShown(ctx context.Context, c Remover, b *v1alpha1.MysqlBackup, shown []screen.Line) error {
	now, err := op.survey(ctx, c, b)
	if err != nil {
		return err
	}
	for _, line := range now {
		if (line.Label == labelWarning || line.Label == labelStorage) && !slices.Contains(shown, line) {
			return cli.Refused("refused: it has changed meanwhile what the deletion would do: %s; nothing was deleted\n  look again: kubectl mfg backup delete %s -n %s",
				line.Text, b.Name, op.Namespace)
		}
	}
	return nil
}

const (
	labelStorage = "Storage"
	labelWarning = "Warning"
)

// plan says what goes, and what is then left.
func (op *Delete) plan(all report.BackupList, around surroundings) []screen.Line {
	r := *op.rep
	what := "the artifact goes for good: " + cli.OrNoSite(r.Location)
	switch {
	case op.KeepArtifact || r.KeepsArtifact:
		what = "the artifact stays in the storage (" + cli.OrNoSite(r.Location) + "), and retention does not count or remove it any more"
	case op.stays != "":
		what = "the artifact STAYS in the storage (" + cli.OrNoSite(r.Location) + "): " + op.stays + ". Remove it there by hand"
	case !r.Completed():
		what = "what there is of it in the storage goes"
	}
	left, proven := 0, 0
	for _, b := range all.Items {
		if b.Metadata.Name == r.Metadata.Name || !b.Completed() || b.Metadata.DeletionTimestamp != nil {
			continue
		}
		left++
		if b.Proven() {
			proven++
		}
	}
	plan := []screen.Line{{Label: "Backup", Text: fmt.Sprintf("of %s by profile %s, %s, %s", r.Group, r.Profile, r.Phase, sizeWords(r))}, {Label: labelStorage, Text: what},
		{Label: "Left", Text: fmt.Sprintf("%d other completed backups of %s, %d of them verified", left, r.Group, proven)}}
	if r.Completed() && left == 0 {
		plan = append(plan, screen.Line{Label: labelWarning, Text: "it is the only one: then there is nothing to restore " + r.Group + " from"})
	} else if r.Proven() && proven == 0 {
		plan = append(plan, screen.Line{Label: labelWarning, Text: "it is the only verified one"})
	}
	for _, text := range around.warnings {
		plan = append(plan, screen.Line{Label: labelWarning, Text: text})
	}
	return plan
}

func sizeWords(r report.Backup) string {
	if r.Size == "" {
		return "size not known"
	}
	return r.Size
}

// keep first marks that the artifact stays; only then does it delete anything.
func (op *Delete) keep(ctx context.Context, env cli.Environment, c Cluster, b *v1alpha1.MysqlBackup) (*v1alpha1.MysqlBackup, error) {
	uid := b.UID
	for try := 1; ; try++ {
		kept, err := c.AnnotateBackup(ctx, b, map[string]string{v1alpha1.AnnotationKeepArtifact: "true"})
		if err == nil {
			return kept, nil
		}
		if !apierrors.IsConflict(err) || try == annotateTries || !env.Wait(ctx, 20*time.Millisecond) {
			return nil, fmt.Errorf("%w\n  nothing was deleted", err)
		}
		if b, err = c.Backup(ctx, op.Namespace, b.Name); err != nil {
			return nil, err
		}
		if b.UID != uid {
			return nil, cli.Refused("refused: backup %s is another one by now; nothing was deleted\n  look again: %s", b.Name, show(op.Namespace, b.Name))
		}
		if err := op.begun(b); err != nil {
			return nil, err
		}
	}
}

// begun refuses to promise that an artifact stays once the backup was deleted: a Job may be removing it, and the mark would not stop that.
func (op *Delete) begun(b *v1alpha1.MysqlBackup) error {
	if !op.KeepArtifact || b.DeletionTimestamp == nil {
		return nil
	}
	where := b.Status.Location
	if where == "" {
		where = "the storage of profile " + b.Spec.Profile
	}
	return cli.Refused("refused: backup %s was deleted before, and the removal of its artifact may have begun; nothing was changed\n"+
		"  see how far it is: %s; look for what is left in %s\n  to keep what the operator has not begun to remove: kubectl annotate mysqlbackup %s -n %s %s=true",
		b.Name, show(op.Namespace, b.Name), where, b.Name, op.Namespace, v1alpha1.AnnotationKeepArtifact)
}

func (op *Delete) follow(ctx context.Context, env cli.Environment, c Cluster, deleted *v1alpha1.MysqlBackup) (int, error) {
	w := watcher{op: &op.Common, env: env, c: c, name: deleted.Name, tell: progress.New(env, op.Output), goesOn: "the backup is deleted all the same",
		words: phaseWords}
	_, err := w.follow(ctx, func(b *v1alpha1.MysqlBackup) bool { return b.UID != deleted.UID })
	if err != nil && !apierrors.IsNotFound(err) {
		return cli.ExitError, err
	}
	if op.staysThere() {
		return op.finish(env, cli.OutcomeDone, "backup "+deleted.Name+" is gone; its artifact is still in the storage")
	}
	return op.gone(ctx, env, c, deleted)
}
