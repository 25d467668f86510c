// SPDX-License-Identifier: Apache-2.0

// Package passwords replaces the passwords of the operator's own accounts.
package passwords

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// allAccounts is the order for every account.
const allAccounts = "all"

// Accounts are the accounts whose passwords can be replaced.
var Accounts = []string{v1alpha1.AccountOperator, v1alpha1.AccountReplication, v1alpha1.AccountSidecar, v1alpha1.AccountClone}

// Op is `kubectl mfg rotate-passwords`.
type Op struct {
	request.Request
	Accounts []string
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	for _, name := range op.Accounts {
		if !slices.Contains(Accounts, name) {
			return fmt.Errorf("--account must be one of %s", strings.Join(Accounts, ", "))
		}
	}
	return op.Request.Validate()
}

// value returns the annotation's value: the accounts in a fixed order, whatever the order of the flags.
func (op *Op) value() string {
	var names []string
	for _, name := range Accounts {
		if slices.Contains(op.Accounts, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) == len(Accounts) {
		return allAccounts
	}
	return strings.Join(names, ",")
}

// Run asks for new passwords and follows the progress.
func (op *Op) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	view, err := op.Look(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	value := op.value()
	check := func(g *v1alpha1.MysqlFailoverGroup) error { return op.allowed(g, value) }
	if err := check(view.Group); err != nil {
		return cli.ExitError, err
	}
	change := map[string]string{v1alpha1.AnnotationRotatePasswords: value}
	plan := op.plan(value)
	op.ShowPlan(env, fmt.Sprintf("Replace passwords of %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Replace them?"); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("rotate-passwords", plan, change)
	if _, err := op.Submit(ctx, env, c, change, check); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = cli.OutcomeRequested, fmt.Sprintf("asked for; see how far it is: kubectl get mfg %s -n %s -o jsonpath='{.status.passwords}'", op.Group, op.Namespace)
	if !op.Wait {
		return op.Finish(env, rep)
	}
	if err := op.followPasswords(ctx, env, c, value, rep); err != nil {
		return cli.ExitError, err
	}
	return op.Finish(env, rep)
}

// allowed refuses what would replace another order. It joins an equal one.
func (op *Op) allowed(g *v1alpha1.MysqlFailoverGroup, value string) error {
	if other, is := g.Annotations[v1alpha1.AnnotationRotatePasswords]; is && other != value {
		return cli.Refused("refused: the passwords of %s are being replaced\n  wait for that, or see how far it is: kubectl get mfg %s -n %s -o jsonpath='{.status.passwords}'",
			quotedIfEmpty(other), op.Group, op.Namespace)
	}
	return nil
}

func quotedIfEmpty(value string) string {
	if value == "" {
		return `""`
	}
	return value
}

func (op *Op) plan(value string) []screen.Line {
	accounts := strings.ReplaceAll(value, ",", ", ")
	if value == allAccounts {
		accounts = strings.Join(Accounts, ", ")
	}
	return []screen.Line{
		{Label: "Accounts", Text: accounts},
		{Label: "After", Text: "new passwords in Secret " + v1alpha1.AccountsSecret(op.Group) + ", and the old ones refused on every site"},
		{Label: "Meanwhile", Text: "both are valid; clients, roles and pods are not touched"},
		{Label: "Undo", Text: "none is needed: replace them again"},
	}
}

// followPasswords shows how far it is until the order is answered.
func (op *Op) followPasswords(ctx context.Context, env cli.Environment, c request.Cluster, value string, rep *request.Report) error {
	began, said := env.Now(), ""
	g, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if words := passwordWords(g); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return !op.Stands(g, v1alpha1.RequestRotatePasswords, value)
	})
	if err != nil {
		return err
	}
	answer := op.Answer(g, v1alpha1.RequestRotatePasswords)
	switch {
	case rep.Take(answer):
		rep.Message = "done, " + rep.Message
	case answer == nil:
		rep.Next = fmt.Sprintf("see what became of it: kubectl get mfg %s -n %s -o jsonpath='{.status.passwords}'", op.Group, op.Namespace)
	}
	return nil
}

// passwordWords says how far it is.
func passwordWords(g *v1alpha1.MysqlFailoverGroup) string {
	p := g.Status.Passwords
	words := "asked the operator"
	switch {
	case p == nil:
		return words
	case p.Phase == v1alpha1.PasswordsIntroducing:
		words = "every site is given the new passwords beside the old ones"
	case p.Phase == v1alpha1.PasswordsSwitching:
		words = "all programs change to the new passwords; the old ones are still valid"
	}
	if p.Message != "" {
		words += ": " + p.Message
	}
	return words
}
