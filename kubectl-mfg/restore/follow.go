// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/progress"
)

const (
	followEvery = time.Second
	// untaken is after how long the command says that no operator has taken up the restore.
	untaken = 30 * time.Second
	// patience is how long a failed restore is watched: the operator tries again, and the cause may pass.
	patience = time.Minute
	// opening is how long a restored group may take to accept writes before the command ends without it.
	opening = 2 * time.Minute
)

// apply makes the group, and follows it.
func (op *Op) apply(ctx context.Context, env cli.Environment, c Cluster, g *v1alpha1.MysqlFailoverGroup) (int, error) {
	made, err := c.CreateGroup(ctx, g, false)
	switch {
	case apierrors.IsAlreadyExists(err):
		return cli.ExitError, cli.Refused("refused: another person has just created a group %s; nothing was changed", op.Group)
	case err != nil:
		return cli.ExitError, err
	}
	if !op.Wait {
		return op.finish(env, cli.OutcomeRequested, "group "+op.Group+" is made, and the restore begins; see how far it is: "+op.look())
	}
	began := env.Now()
	done, err := op.follow(ctx, env, c, made)
	if err != nil {
		return cli.ExitError, err
	}
	at := done.Status.Restore
	if at.Phase == v1alpha1.RestoreFailed {
		return cli.ExitError, op.failure(at)
	}
	took := env.Now().Sub(began)
	if at.StartedAt != nil && at.FinishedAt != nil {
		took = at.FinishedAt.Sub(at.StartedAt.Time)
	}
	op.rep.Backup, op.rep.RestoreSeconds = cmp.Or(at.Backup, op.rep.Backup), int64(took.Seconds())
	now := "it accepts writes"
	if !open(done) {
		now = "it does not accept writes yet"
	}
	return op.finish(env, cli.OutcomeDone, fmt.Sprintf("restored: %s has the data of backup %s, on %s, after %s; %s, and the other sites are copied from it: %s",
		op.Group, cmp.Or(op.rep.Backup, "(unnamed)"), cli.OrNoSite(at.Site), duration.HumanDuration(took), now, op.look()))
}

func (op *Op) look() string {
	return fmt.Sprintf("kubectl mfg status %s -n %s -w", op.Group, op.Namespace)
}

// follow reads the group again and again until its restore is over and it accepts writes.
func (op *Op) follow(ctx context.Context, env cli.Environment, c Cluster, made *v1alpha1.MysqlFailoverGroup) (*v1alpha1.MysqlFailoverGroup, error) {
	tell := progress.New(env, op.Output)
	defer tell.End()
	began, failing, restored := env.Now(), time.Time{}, time.Time{}
	end := began.Add(op.Timeout)
	for {
		g, err := c.Group(ctx, op.Namespace, op.Group)
		switch {
		case ctx.Err() != nil:
			return nil, op.gaveUp("interrupted")
		case apierrors.IsNotFound(err), err == nil && (g.UID != made.UID || g.DeletionTimestamp != nil):
			return nil, cli.Refused("group %s was deleted before it was restored", op.Group)
		case apierrors.IsForbidden(err):
			return nil, err
		case err == nil:
			failing, restored = since(failed(g), failing, env.Now()), since(over(g), restored, env.Now())
			if over(g) && open(g) || lasted(restored, env.Now(), opening) || lasted(failing, env.Now(), patience) {
				return g, nil
			}
			tell.Tell(op.howFar(ctx, c, g, env.Now().Sub(began)))
		}
		if env.Now().After(end) {
			why := fmt.Sprintf("no outcome within %s", op.Timeout)
			if err != nil { // it may pass: perhaps just the API server is in trouble
				why += fmt.Sprintf(" (last error: %s)", cli.FirstLine(err))
			}
			return nil, op.gaveUp(why)
		}
		if !env.Wait(ctx, followEvery) {
			return nil, op.gaveUp("interrupted")
		}
	}
}

func over(g *v1alpha1.MysqlFailoverGroup) bool {
	return g.Status.Restore != nil && g.Status.Restore.Phase == v1alpha1.RestoreCompleted
}

func failed(g *v1alpha1.MysqlFailoverGroup) bool {
	return g.Status.Restore != nil && g.Status.Restore.Phase == v1alpha1.RestoreFailed
}

// open is true once the active site accepts writes: the next command can use the group.
func open(g *v1alpha1.MysqlFailoverGroup) bool {
	for _, s := range g.Status.Sites {
		if s.Name == g.Status.ActiveSite && s.State == v1alpha1.SitePrimary {
			return true
		}
	}
	return false
}

// since returns since when every look found it so; zero while it is not.
func since(so bool, before, now time.Time) time.Time {
	switch {
	case !so:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

func lasted(since, now time.Time, d time.Duration) bool {
	return !since.IsZero() && now.Sub(since) >= d
}

// howFar adds what the pod says, which status does not: the operator may not read logs.
func (op *Op) howFar(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup, since time.Duration) (string, int32) {
	text, percent := words(g, since)
	r := g.Status.Restore
	if r == nil || r.Phase != v1alpha1.RestoreLoading || r.Site == "" {
		return text, percent
	}
	said, is := progress.FromLog(ctx, c.Kube(), g.Namespace, progress.Selector(v1alpha1.LabelGroup, g.Name, v1alpha1.LabelName, v1alpha1.NameMySQL, v1alpha1.LabelSite, r.Site), containerLoad)
	if !is {
		return text, percent
	}
	return text + ", " + said.Words(), said.Known()
}

// containerLoad is the container in the pod of a site that loads a backup.
const containerLoad = "load"

// words says how far the restore is.
func words(g *v1alpha1.MysqlFailoverGroup, since time.Duration) (string, int32) {
	r := g.Status.Restore
	if r == nil || r.Phase == "" {
		if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionRestoreReady); c != nil && c.Status == metav1.ConditionFalse {
			return fmt.Sprintf("not begun: %s [%s]", c.Message, c.Reason), -1
		}
		if since >= untaken {
			return fmt.Sprintf("not taken up yet: does the operator run, and is it of a version that restores? kubectl get pods -n %s -l %s", live.DefaultNamespace, live.Selector), -1
		}
		return "asked the operator", -1
	}
	if over(g) {
		return "backup " + cmp.Or(r.Backup, "(unnamed)") + " is on " + cli.OrNoSite(r.Site) + ", which opens for writes", -1
	}
	text := "the backup is looked for and checked"
	percent := int32(-1)
	switch r.Phase { //nolint:exhaustive // the others are over, or looked for
	case v1alpha1.RestoreFailed:
		text = "failed, and is tried again"
	case v1alpha1.RestoreLoading:
		if r.Progress > 0 {
			percent = r.Progress
		}
		return cmp.Or(r.Message, "backup "+cmp.Or(r.Backup, "(unnamed)")+" is being loaded into "+cli.OrNoSite(r.Site)), percent
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text, percent
}

// failure returns the reason with the way out. Nothing has opened, and the operator keeps trying.
func (op *Op) failure(at *v1alpha1.RestoreStatus) error {
	return &cli.Error{Code: cli.ExitRefused, Reason: at.Reason, Err: fmt.Errorf(`the restore failed (%s): %s; nothing was opened
  once that is put right the operator goes on by itself; see how far it is: %s
  see what was said: kubectl mfg events %s -n %s --warnings
  to give it up, and begin again with another backup: kubectl delete mysqlfailovergroup %s -n %s, and its volumes after that`,
		cmp.Or(string(at.Reason), "no reason given"), cmp.Or(at.Message, "the operator does not say why"), op.look(), op.Group, op.Namespace, op.Group, op.Namespace)}
}

func (op *Op) gaveUp(why string) error {
	return &cli.Error{Code: cli.ExitTimeout, Ended: why, Err: fmt.Errorf("%s: only the waiting ended, the restore continues\n  see how far it is: %s", why, op.look())}
}

// finish writes the outcome.
func (op *Op) finish(env cli.Environment, outcome, words string) (int, error) {
	op.rep.Outcome, op.rep.Message = outcome, words
	if op.Output.Printer != nil {
		return cli.ExitHealthy, op.Output.Print(env.Out, op.rep)
	}
	fmt.Fprintln(env.Out, words)
	return cli.ExitHealthy, nil
}
