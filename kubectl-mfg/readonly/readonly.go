// SPDX-License-Identifier: Apache-2.0

// Package readonly makes and drops the account of a group that may only read. The operator has no right to make accounts; the person has it, by the
// password of root.
package readonly

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// managedBy is the value of LabelManagedBy on the Secrets that this command makes.
const managedBy = "kubectl-mfg"

// lookEvery is how often the other sites are asked whether they have the account.
const lookEvery = time.Second

// Op is what both commands share.
type Op struct {
	request.Request
	// random makes a password; a test may replace it.
	random func() string
}

// Create is `kubectl mfg account create`.
type Create struct {
	Op
	// Databases are what the account may read; none for that of the application.
	Databases []string
}

// Drop is `kubectl mfg account drop`.
type Drop struct{ Op }

// Validate checks only the command line.
func (op *Op) Validate() error {
	if op.DryRun == request.DryRunServer {
		return errors.New("--dry-run=server is not possible: most of it happens in MySQL; use --dry-run=client")
	}
	return op.Request.Validate()
}

// Validate checks only the command line.
func (op *Create) Validate() error {
	for _, d := range op.Databases {
		if err := checkDatabase(d); err != nil {
			return err
		}
	}
	return op.Op.Validate()
}

// world is what is read before anything is done.
type world struct {
	group        *v1alpha1.MysqlFailoverGroup
	secret       *corev1.Secret
	rootPassword string
	active       mysqlclient.Server
	databases    []string
	seen         seen
}

func (op *Op) name() string {
	return mysqlclient.AccountSecret(op.Group, mysqlclient.AccountReadOnly)
}

// read looks at all that a decision rests on. wanted are the databases that the account is to read.
func (op *Op) read(ctx context.Context, c mysqlclient.Cluster, wanted func(*v1alpha1.MysqlFailoverGroup) []string) (*world, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return nil, err
	}
	w := &world{group: g}
	rootSecret, err := c.Kube().CoreV1().Secrets(op.Namespace).Get(ctx, v1alpha1.RootSecret(op.Group), metav1.GetOptions{})
	if err != nil {
		return nil, cli.RightsHint(err, "get", "secrets/"+v1alpha1.RootSecret(op.Group), op.Namespace)
	}
	w.rootPassword = string(rootSecret.Data[v1alpha1.ApplicationPassword])
	secret, err := c.Kube().CoreV1().Secrets(op.Namespace).Get(ctx, op.name(), metav1.GetOptions{})
	switch {
	case err == nil:
		w.secret = secret
	case !apierrors.IsNotFound(err):
		return nil, cli.RightsHint(err, "get", "secrets/"+op.name(), op.Namespace)
	}
	if w.active, err = mysqlclient.ServerOf(ctx, c, op.Namespace, op.Group, ""); err != nil {
		return nil, err
	}
	w.databases = wanted(g)
	return w, w.look(ctx)
}

// look asks the active site as root.
func (w *world) look(ctx context.Context) error {
	said, err := w.active.Run(ctx, mysqlclient.Root, w.rootPassword, lookStatements(w.databases)...)
	if err != nil {
		return fmt.Errorf("ask the active site as root: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	if len(lines) < lookLines {
		return fmt.Errorf("mysql in pod %s answered in %d lines, and not in %d at least", w.active.Pod, len(lines), lookLines)
	}
	w.seen = seen{
		Secret: w.secret != nil, Ours: w.secret != nil && isOurs(w.secret, w.group.Name),
		Exists: lines[0] != "0", Open: lines[1] == "0", PartialRevokes: lines[2] != "0", Databases: lines[lookLines:],
	}
	return nil
}

// MySQL's error numbers for an account that has the password and may not use it: it is expired, or locked after wrong ones.
const (
	numberExpired = 1862
	numberBlocked = 3955
)

// accepts asks whether a site lets the account in.
func (w *world) accepts(ctx context.Context, at mysqlclient.Server) (bool, error) {
	yes, err := at.Accepts(ctx, mysqlclient.AccountReadOnly, w.password())
	if n := mysqlclient.Number(err); n == numberExpired || n == numberBlocked {
		return false, nil
	}
	return yes, err
}

// isOurs is true for a Secret that this command made for the group, with a password that fits on a line.
func isOurs(secret *corev1.Secret, group string) bool {
	password := string(secret.Data[v1alpha1.ApplicationPassword])
	strange := strings.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' })
	return secret.Labels[v1alpha1.LabelManagedBy] == managedBy && secret.Labels[v1alpha1.LabelInstance] == group && password != "" && !strange
}

func (w *world) password() string { return string(w.secret.Data[v1alpha1.ApplicationPassword]) }

// databases are what the account is to read.
func (op *Create) databases(g *v1alpha1.MysqlFailoverGroup) []string {
	if len(op.Databases) == 0 && g.Spec.Application != nil {
		return []string{g.Spec.Application.Database}
	}
	return op.Databases
}

// Run makes the account.
func (op *Create) Run(ctx context.Context, env cli.Environment, c mysqlclient.Cluster) (int, error) {
	w, err := op.read(ctx, c, op.databases)
	if err != nil {
		return cli.ExitError, err
	}
	databases := w.databases
	refused := creation(w.seen, databases)
	if len(databases) == 0 {
		refused = whyNoneNamed
	}
	if refused != "" {
		return cli.ExitError, cli.Refused("refused: %s", refused.of(op.Group, op.Namespace))
	}
	plan := []screen.Line{
		{Label: "Account", Text: fmt.Sprintf("%s, which may read %s and nothing else, on every site", mysqlclient.AccountReadOnly, strings.Join(databases, ", "))},
		{Label: "Secret", Text: op.name() + ", with its password"},
	}
	if w.seen.Exists {
		plan[0].Text = "is there already: " + plan[0].Text
	}
	op.ShowPlan(env, fmt.Sprintf("Make an account of %s (namespace %s) that may only read", op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Make it?"); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("account create", plan, nil)
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	if w.seen.Exists && w.seen.Ours {
		if w.seen.Accepts, err = w.accepts(ctx, w.active); err != nil {
			return cli.ExitError, err
		}
	}
	if w.secret == nil {
		if w.secret, err = op.putSecret(ctx, c, w.group, databases[0]); err != nil {
			return cli.ExitError, err
		}
	}
	if _, err := w.active.Run(ctx, mysqlclient.Root, w.rootPassword, makeStatements(w.seen, w.password(), databases)...); err != nil {
		return cli.ExitError, fmt.Errorf("%w\n  try it again: kubectl mfg account create %s -n %s", err, op.Group, op.Namespace)
	}
	if err := op.beginIn(ctx, c, w.secret, databases[0]); err != nil {
		return cli.ExitError, err
	}
	rep.Outcome = cli.OutcomeDone
	rep.Message = fmt.Sprintf("done: %s may read %s; its password is in Secret %s\n  log in with it: kubectl mfg mysql %s -n %s --account %s",
		mysqlclient.AccountReadOnly, strings.Join(databases, ", "), op.name(), op.Group, op.Namespace, mysqlclient.AccountReadOnly)
	if behind := op.await(ctx, env, c, w); len(behind) > 0 {
		rep.Message += "\n  these sites do not have it yet, and get it once they follow: " + strings.Join(behind, ", ")
	}
	return op.Finish(env, rep)
}

// putSecret makes the Secret before MySQL has the password, so that the password is never lost. It goes with the group.
func (op *Create) putSecret(ctx context.Context, c mysqlclient.Cluster, g *v1alpha1.MysqlFailoverGroup, database string) (*corev1.Secret, error) {
	password := v1alpha1.PasswordPrefix + rand.Text()
	if op.random != nil {
		password = op.random()
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: op.Namespace, Name: op.name(),
			Labels:          map[string]string{v1alpha1.LabelInstance: g.Name, v1alpha1.LabelManagedBy: managedBy},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MysqlFailoverGroup", Name: g.Name, UID: g.UID}},
		},
		Data: map[string][]byte{
			v1alpha1.ApplicationUsername: []byte(mysqlclient.AccountReadOnly), v1alpha1.ApplicationPassword: []byte(password), v1alpha1.ApplicationDatabase: []byte(database),
		},
	}
	made, err := c.Kube().CoreV1().Secrets(op.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: cli.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("another person made the Secret meanwhile: %w\n  try it again: kubectl mfg account create %s -n %s", err, op.Group, op.Namespace)
	}
	if err != nil {
		return nil, cli.RightsHint(err, "create", "secrets", op.Namespace)
	}
	return made, nil
}

// beginIn has sessions begin in another database than the Secret says, if the account may no longer read that one.
func (op *Create) beginIn(ctx context.Context, c mysqlclient.Cluster, secret *corev1.Secret, database string) error {
	if string(secret.Data[v1alpha1.ApplicationDatabase]) == database {
		return nil
	}
	secret = secret.DeepCopy()
	secret.Data[v1alpha1.ApplicationDatabase] = []byte(database)
	if _, err := c.Kube().CoreV1().Secrets(op.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: cli.FieldManager}); err != nil {
		return cli.RightsHint(err, "update", "secrets/"+secret.Name, op.Namespace)
	}
	return nil
}

// await waits until every site lets the account in, and returns those that do not when the time is over.
func (op *Create) await(ctx context.Context, env cli.Environment, c mysqlclient.Cluster, w *world) []string {
	for end := env.Now().Add(op.Timeout); ; {
		var behind []string
		for _, site := range w.group.Spec.Sites {
			// A site that cannot be asked counts as one that does not have it.
			if at, err := mysqlclient.ServerOf(ctx, c, op.Namespace, op.Group, site.Name); err == nil {
				if yes, _ := w.accepts(ctx, at); yes {
					continue
				}
			}
			behind = append(behind, site.Name)
		}
		if len(behind) == 0 || env.Now().After(end) || !env.Wait(ctx, lookEvery) {
			return behind
		}
	}
}

// Run drops the account.
func (op *Drop) Run(ctx context.Context, env cli.Environment, c mysqlclient.Cluster) (int, error) {
	w, err := op.read(ctx, c, func(*v1alpha1.MysqlFailoverGroup) []string { return nil })
	if err != nil {
		return cli.ExitError, err
	}
	if refused := removal(w.seen); refused != "" {
		return cli.ExitError, cli.Refused("refused: %s", refused.of(op.Group, op.Namespace))
	}
	plan := []screen.Line{{Label: "Drops", Text: "the account " + mysqlclient.AccountReadOnly + " on every site; its sessions stay until they end"}}
	if w.seen.Secret {
		plan = append(plan, screen.Line{Label: "Deletes", Text: "Secret " + op.name()})
	}
	rep := op.Report("account drop", plan, nil)
	if !w.seen.Exists && !w.seen.Secret {
		rep.Outcome, rep.Message = cli.OutcomeDone, fmt.Sprintf("there is no account %s; nothing was changed", mysqlclient.AccountReadOnly)
		return op.Finish(env, rep)
	}
	op.ShowPlan(env, fmt.Sprintf("Drop the account of %s (namespace %s) that may only read", op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Drop it?"); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	if _, err := w.active.Run(ctx, mysqlclient.Root, w.rootPassword, dropStatement); err != nil {
		return cli.ExitError, err
	}
	if w.seen.Secret {
		uid := w.secret.UID
		err := c.Kube().CoreV1().Secrets(op.Namespace).Delete(ctx, op.name(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return cli.ExitError, cli.RightsHint(err, "delete", "secrets/"+op.name(), op.Namespace)
		}
	}
	rep.Outcome, rep.Message = cli.OutcomeDone, fmt.Sprintf("done: %s has no account %s any more", op.Group, mysqlclient.AccountReadOnly)
	return op.Finish(env, rep)
}
