// SPDX-License-Identifier: Apache-2.0

// Package backup asks for backups, shows, verifies, fetches and deletes them, and makes the age identity that opens them. It works on
// MysqlBackup objects; the operator makes the backups. See docs/backups.md.
package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/progress"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Cluster is what the verbs need of the cluster.
type Cluster interface {
	request.GroupReader
	Store
	// Kube is everything else that Kubernetes holds.
	Kube() kubernetes.Interface
}

// Store has the backups that the cluster knows of.
type Store interface {
	// Backups lists those of a group, or of all groups of a namespace for "".
	Backups(ctx context.Context, namespace, group string) ([]v1alpha1.MysqlBackup, error)
	Backup(ctx context.Context, namespace, name string) (*v1alpha1.MysqlBackup, error)
	CreateBackup(ctx context.Context, b *v1alpha1.MysqlBackup) (*v1alpha1.MysqlBackup, error)
	// AnnotateBackup changes annotations of a backup if no one changed it since it was read.
	AnnotateBackup(ctx context.Context, b *v1alpha1.MysqlBackup, change map[string]string) (*v1alpha1.MysqlBackup, error)
	// DeleteBackup deletes that backup, and no later one of its name.
	DeleteBackup(ctx context.Context, b *v1alpha1.MysqlBackup) error
}

// Common is what the verbs share.
type Common struct {
	Namespace string
	Output    cli.Output
	// Wait follows the request to its end, for Timeout at most.
	Wait    bool
	Timeout time.Duration

	// rep is the report as far as it was made.
	rep *report.Backup
}

// Validate checks only the command line.
func (op *Common) Validate() error {
	if op.Wait && op.Timeout <= 0 {
		return errors.New("--timeout must be above 0")
	}
	return nil
}

// Failed is the outcome in machine form.
func (op *Common) Failed(f cli.Failure) (any, cli.Output) {
	if op.rep == nil {
		return nil, op.Output
	}
	op.rep.Outcome, op.rep.Next = f.Outcome, f.Next
	if f.Message != "" {
		op.rep.Message = f.Message
	}
	if f.Reason != "" {
		op.rep.Reason = f.Reason
	}
	return op.rep, op.Output
}

// note remembers the backup for a report.
func (op *Common) note(b *v1alpha1.MysqlBackup) report.Backup {
	rep := report.BackupOf(b)
	op.rep = &rep
	return rep
}

// finish writes the outcome: words for people, the report for programs.
func (op *Common) finish(env cli.Environment, outcome, words string) (int, error) {
	op.rep.Outcome = outcome
	if op.Output.Printer != nil {
		return cli.ExitHealthy, op.Output.Print(env.Out, op.rep)
	}
	fmt.Fprintln(env.Out, words)
	return cli.ExitHealthy, nil
}

const (
	// followEvery is how often a backup is looked at.
	followEvery = time.Second
	// untaken is after how long the command says that no operator has taken it up.
	untaken = 30 * time.Second
)

// watcher follows one backup.
type watcher struct {
	op   *Common
	env  cli.Environment
	c    Cluster
	name string
	tell *progress.Teller
	// words says how far it is.
	words func(*v1alpha1.MysqlBackup) string
	// task is the task of the Job whose log says more; empty if none does.
	task string
	// goesOn is what to say when the wait has ended.
	goesOn string
}

// follow reads the backup again and again until done says so. gone is nil if it must not vanish.
func (w *watcher) follow(ctx context.Context, done func(*v1alpha1.MysqlBackup) bool) (*v1alpha1.MysqlBackup, error) {
	defer w.tell.End()
	end := w.env.Now().Add(w.op.Timeout)
	for {
		b, err := w.c.Backup(ctx, w.op.Namespace, w.name)
		switch {
		case ctx.Err() != nil:
			return nil, w.gaveUp("interrupted")
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return nil, err
		case err == nil:
			w.op.note(b)
			if done(b) {
				return b, nil
			}
			w.tell.Tell(w.howFar(ctx, b))
		}
		if w.env.Now().After(end) { // an error may pass: perhaps just the API server is in trouble
			why := fmt.Sprintf("no outcome within %s", w.op.Timeout)
			if err != nil {
				why += fmt.Sprintf(" (last error: %s)", cli.FirstLine(err))
			}
			return nil, w.gaveUp(why)
		}
		if !w.env.Wait(ctx, followEvery) {
			return nil, w.gaveUp("interrupted")
		}
	}
}

// containerBackup is the container in the pods of backups.
const containerBackup = "backup"

// howFar adds what the pod says, which status does not: the operator may not read logs.
func (w *watcher) howFar(ctx context.Context, b *v1alpha1.MysqlBackup) (string, int32) {
	words := w.words(b)
	busy := w.task == v1alpha1.TaskVerify || w.task == v1alpha1.TaskBackup && b.Status.Phase == v1alpha1.BackupRunning
	if !busy {
		return words, -1
	}
	said, is := progress.FromLog(ctx, w.c.Kube(), b.Namespace, progress.Selector(v1alpha1.LabelBackup, b.Name, v1alpha1.LabelBackupTask, w.task), containerBackup)
	switch {
	case is:
		return words + ", " + said.Words(), said.Known()
	case w.task == v1alpha1.TaskBackup && b.Status.Progress > 0:
		return words, b.Status.Progress
	}
	return words, -1
}

func (w *watcher) gaveUp(why string) error {
	return &cli.Error{Code: cli.ExitTimeout, Ended: why, Err: fmt.Errorf("%s: only the waiting ended, %s\n  see how far it is: %s", why, w.goesOn, show(w.op.Namespace, w.name))}
}

func show(namespace, name string) string {
	return fmt.Sprintf("kubectl mfg backup show %s -n %s", name, namespace)
}

// phaseWords says how far a backup is.
func phaseWords(b *v1alpha1.MysqlBackup) string {
	at := b.Status
	words := ""
	switch at.Phase {
	case "":
		return "asked the operator"
	case v1alpha1.BackupPending:
		words = "waits"
	case v1alpha1.BackupRunning:
		words = "is taken from " + cli.OrNoSite(at.Site)
		if at.Attempts > 1 {
			words += fmt.Sprintf(" (attempt %d)", at.Attempts)
		}
		return words
	case v1alpha1.BackupDeleting:
		words = "what is in the storage is being removed"
	case v1alpha1.BackupCompleted, v1alpha1.BackupFailed:
		words = strings.ToLower(string(at.Phase))
	}
	if at.Message != "" {
		words += ": " + at.Message
	}
	return words
}

// named finds the backup that the arguments name: BACKUP, or GROUP and BACKUP.
func named(ctx context.Context, c Cluster, namespace, group, name string) (*v1alpha1.MysqlBackup, error) {
	b, err := c.Backup(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if group != "" && b.Spec.Group != group {
		return nil, fmt.Errorf("backup %s is of group %s, not of %s\n  list those of %s: kubectl mfg backup list %s -n %s", name, b.Spec.Group, group, group, group, namespace)
	}
	return b, nil
}

// confirm asks y/N.
func confirm(ctx context.Context, env cli.Environment, question string) error {
	if !env.Interactive() {
		return cli.NotConfirmed("there is no terminal to ask on, and no --yes: nothing was changed")
	}
	fmt.Fprint(env.ErrOut, question+" [y/N] ")
	said := make(chan string, 1)
	go func() { // left behind when the context ends: a terminal cannot be read with a deadline
		line, err := bufio.NewReader(env.In).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		said <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-said:
		if slices.Contains([]string{"y", "yes"}, line) {
			return nil
		}
		return cli.NotConfirmed("not confirmed: nothing was changed")
	case <-ctx.Done():
		return cli.NotConfirmed("interrupted: nothing was changed")
	}
}

// options says how to draw for people.
func (op *Common) options(env cli.Environment, color string) screen.Options {
	width, _ := env.Terminal()
	return screen.Options{Width: width, Color: cli.Colored(color, env), Wide: op.Output.Format == cli.OutputWide, Now: env.Now()}
}

// unheard is the text once no operator has taken up a request for a while.
func unheard() string {
	return fmt.Sprintf("not taken up yet: does the operator run, and is it of a version that makes backups? kubectl get pods -n %s -l %s", live.DefaultNamespace, live.Selector)
}
