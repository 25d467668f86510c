// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// allAccounts is the order for every account.
const allAccounts = "all"

var passwordAccounts = []string{v1alpha1.AccountOperator, v1alpha1.AccountReplication, v1alpha1.AccountSidecar, v1alpha1.AccountClone}

// rotatePasswordsOp is `kubectl mfg rotate-passwords`.
type rotatePasswordsOp struct {
	request
	Accounts []string
}

func (a *app) rotatePasswordsCommand() *cobra.Command {
	op := rotatePasswordsOp{}
	cmd := &cobra.Command{
		Use:   "rotate-passwords GROUP [--account ACCOUNT]...",
		Short: "Replace the passwords of the operator's own accounts, without downtime",
		Long: `Replace the passwords with which operator, sidecars, replication and clones log in at MySQL. Nobody chooses or sees the new
ones. Every site takes both passwords first, then everybody changes to the new one, and in the end the old one is refused on every
site. Clients, roles and pods are not touched, and a failover may happen at any moment of it.

It takes a minute or two, and for as long as a site cannot be reached it waits: both passwords stay valid until it can. Ctrl-C
ends only the waiting.

The password of root is not among them: it is yours. To change it, see docs/security.md.

` + exitCodes,
		Example: `  # All of them; asks, and shows how far it is
  kubectl mfg rotate-passwords orders

  # Those of replication and of the sidecars, from a script
  kubectl mfg rotate-passwords orders --account replication --account sidecar --yes

  # Ask for it and go
  kubectl mfg rotate-passwords orders --yes --wait=false`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringSliceVar(&op.Accounts, "account", nil, "Only the password of this account: "+strings.Join(passwordAccounts, ", ")+". May be given more than once. Default: all.")
	_ = cmd.RegisterFlagCompletionFunc("account", cobra.FixedCompletions(passwordAccounts, cobra.ShellCompDirectiveNoFileComp))
	out := op.bind(cmd, 15*time.Minute)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *rotatePasswordsOp) validate() error {
	for _, name := range op.Accounts {
		if !slices.Contains(passwordAccounts, name) {
			return fmt.Errorf("--account must be one of %s", strings.Join(passwordAccounts, ", "))
		}
	}
	return op.request.validate()
}

// value is what the annotation is set to: the accounts in one order, whatever the order of the flags.
func (op *rotatePasswordsOp) value() string {
	var names []string
	for _, name := range passwordAccounts {
		if slices.Contains(op.Accounts, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) == len(passwordAccounts) {
		return allAccounts
	}
	return strings.Join(names, ",")
}

func (op *rotatePasswordsOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	view, err := op.look(ctx, c)
	if err != nil {
		return exitError, err
	}
	value := op.value()
	check := func(g *v1alpha1.MysqlFailoverGroup) error { return op.allowed(g, value) }
	if err := check(view.group); err != nil {
		return exitError, err
	}
	change := map[string]string{v1alpha1.AnnotationRotatePasswords: value}
	plan := op.plan(value)
	op.showPlan(env, fmt.Sprintf("Replace passwords of %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.confirm(ctx, env, "Replace them?"); err != nil {
		return exitError, err
	}
	rep := op.report("rotate-passwords", plan, change)
	if _, err := op.submit(ctx, env, c, change, check); err != nil {
		return exitError, err
	}
	if op.DryRun != dryRunNone {
		return exitHealthy, op.dryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = outcomeRequested, fmt.Sprintf("asked for; see how far it is: kubectl get mfg %s -n %s -o jsonpath='{.status.passwords}'", op.Group, op.Namespace)
	if !op.Wait {
		return op.finish(env, rep)
	}
	if err := op.followPasswords(ctx, env, c, value, rep); err != nil {
		return exitError, err
	}
	return op.finish(env, rep)
}

// allowed refuses what would take another order's place. The same one is joined.
func (op *rotatePasswordsOp) allowed(g *v1alpha1.MysqlFailoverGroup, value string) error {
	if other, is := g.Annotations[v1alpha1.AnnotationRotatePasswords]; is && other != value {
		return refused("refused: the passwords of %s are being replaced\n  wait for that, or see how far it is: kubectl get mfg %s -n %s -o jsonpath='{.status.passwords}'",
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

func (op *rotatePasswordsOp) plan(value string) []planLine {
	accounts := strings.ReplaceAll(value, ",", ", ")
	if value == allAccounts {
		accounts = strings.Join(passwordAccounts, ", ")
	}
	return []planLine{
		{"Accounts", accounts},
		{"After", "new passwords in Secret " + v1alpha1.AccountsSecret(op.Group) + ", and the old ones refused on every site"},
		{"Meanwhile", "both are valid; clients, roles and pods are not touched"},
		{"Undo", "none is needed: replace them again"},
	}
}

// followPasswords shows how far it is until the order is answered.
func (op *rotatePasswordsOp) followPasswords(ctx context.Context, env Environment, c Cluster, value string, rep *requestReport) error {
	began, said := env.Now(), ""
	g, err := op.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if words := passwordWords(g); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return !op.stands(g, v1alpha1.RequestRotatePasswords, value)
	})
	if err != nil {
		return err
	}
	answer := op.answer(g, v1alpha1.RequestRotatePasswords)
	switch {
	case rep.take(answer):
		rep.Message = "done, " + rep.Message
	case answer == nil:
		rep.Next = fmt.Sprintf("see what became of it: kubectl get mfg %s -n %s -o jsonpath='{.status.passwords}'", op.Group, op.Namespace)
	}
	return nil
}

// passwordWords say how far it is.
func passwordWords(g *v1alpha1.MysqlFailoverGroup) string {
	p := g.Status.Passwords
	words := "asked the operator"
	switch {
	case p == nil:
		return words
	case p.Phase == v1alpha1.PasswordsIntroducing:
		words = "every site is given the new passwords beside the old ones"
	case p.Phase == v1alpha1.PasswordsSwitching:
		words = "everybody changes to the new passwords; the old ones are valid yet"
	}
	if p.Message != "" {
		words += ": " + p.Message
	}
	return words
}
