// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// adoptConfirmed is what the operator wants to read before it encrypts a group that serves already.
const adoptConfirmed = "confirm"

// adoptOp is `kubectl mfg adopt`.
type adoptOp struct {
	request
	Tables bool
}

func (a *app) adoptCommand() *cobra.Command {
	op := adoptOp{}
	cmd := &cobra.Command{
		Use:   "adopt GROUP",
		Short: "Encrypt a group that serves already, in part; list what is still in the clear",
		Long: `Encrypt a group that serves already. spec.encryptionAtRest.enabled is to be set before; the operator refuses it until
somebody accepts what it means, and that is what this command does:

- What is written from then on to redo, undo, binary and relay logs is encrypted, and so are tables of new schemas.
- What is there stays in the clear until it is rebuilt: every table, and old binary logs until they are purged.
- A schema that is there goes on making its new tables in the clear, until its default is changed.
- Encryption cannot be turned off again.

--tables lists what is still in the clear on the active site, as statements that can be piped into "kubectl mfg mysql". It
reads it with the mysql client in the pod: that needs the rights of that command. A statement copies its table, on the
active site and then on each replica. Exit code 3 says that something is still in the clear.

If nothing may ever have been in the clear on a volume, make a new encrypted group instead, and load it from this one.

` + exitCodes,
		Example: `  # What would it mean? Nothing is sent
  kubectl mfg adopt orders --dry-run=client

  # Accept it, and wait until every site is sealed
  kubectl mfg adopt orders

  # What is still in the clear, and what encrypts it
  kubectl mfg adopt orders --tables

  # Encrypt all of it; paris is active
  kubectl mfg adopt orders --tables | kubectl mfg mysql orders paris`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().BoolVar(&op.Tables, "tables", false, "List what is still in the clear, with the statements that encrypt it. Changes nothing.")
	out := op.bind(cmd, time.Hour)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *adoptOp) validate() error {
	if op.Tables && op.DryRun != dryRunNone {
		return errors.New("--tables changes nothing: it needs no --dry-run")
	}
	return op.request.validate()
}

func (op *adoptOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	if op.Tables {
		return op.tables(ctx, env, c)
	}
	view, err := op.look(ctx, c)
	if err != nil {
		return exitError, err
	}
	if err := op.allowed(view.group); err != nil {
		return exitError, err
	}
	change, plan := map[string]string{}, op.plan(view.group)
	if view.group.Annotations[v1alpha1.AnnotationEncryptionAdopt] != adoptConfirmed {
		change[v1alpha1.AnnotationEncryptionAdopt] = adoptConfirmed
	}
	rep := op.report("adopt", plan, change)
	if at := view.group.Status.EncryptionAtRest; at != nil && at.Sealed {
		rep.Change, rep.Outcome, rep.Message = map[string]string{}, outcomeDone, "nothing was changed: the group is encrypted already; "+op.next(view.group)
		return op.finish(env, rep)
	}
	op.showPlan(env, fmt.Sprintf("Encrypt %s (namespace %s), which serves already", op.Group, op.Namespace), plan)
	if len(change) > 0 {
		if err := op.confirmName(ctx, env, "What is there stays in the clear until it is rebuilt, and encryption cannot be turned off again."); err != nil {
			return exitError, err
		}
		if _, err := op.submit(ctx, env, c, change, op.allowed); err != nil {
			return exitError, err
		}
	}
	if op.DryRun != dryRunNone {
		return exitHealthy, op.dryRunDone(env, rep)
	}
	if !op.Wait {
		rep.Outcome, rep.Message = outcomeRequested, "asked for; see how far it is: kubectl mfg status "+op.Group+" -n "+op.Namespace+" -w"
		return op.finish(env, rep)
	}
	return op.followAdoption(ctx, env, c, rep)
}

// allowed refuses what the custom resource alone shows to be impossible.
func (op *adoptOp) allowed(g *v1alpha1.MysqlFailoverGroup) error {
	e := g.Spec.EncryptionAtRest
	if g.Spec.TLS == nil {
		return refused("refused: %s has no TLS, without which its sites cannot be cloned encrypted, and TLS cannot be added to a group\n  make a new group with spec.tls and spec.encryptionAtRest, and move the data",
			op.Group)
	}
	if e == nil || !e.Enabled {
		return refused("refused: encryption is not asked for in the specification of %s\n  to turn it on (nothing is encrypted by that alone): kubectl patch mfg %s -n %s --type merge -p '{\"spec\":{\"encryptionAtRest\":{\"enabled\":true}}}'",
			op.Group, op.Group, op.Namespace)
	}
	if g.Annotations[v1alpha1.AnnotationEncryptionAdopt] == adoptConfirmed || g.Status.EncryptionAtRest != nil {
		return nil // it is only waited for, or over
	}
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) {
		return refused("refused: %s is %s, and this replaces pods\n  to go on: kubectl mfg resume %s -n %s", op.Group, pausedNow(g), op.Group, op.Namespace)
	}
	return notMoving(g)
}

func (op *adoptOp) plan(g *v1alpha1.MysqlFailoverGroup) []planLine {
	active := orDash(g.Status.ActiveSite)
	return []planLine{
		{"Now", fmt.Sprintf("%s; %s is active under epoch %d", encryptionNow(g), active, g.Status.Epoch)},
		{"After", "every site has a keyring of its own, in escrow and sealed; redo, undo, binary and relay logs are encrypted from then on, and tables of new schemas"},
		{"In clear", "every table that is there, new tables of schemas that are there, and old binary logs: until they are rebuilt, changed and purged"},
		{"Rebuild", fmt.Sprintf("kubectl mfg adopt %s -n %s --tables lists the statements", op.Group, op.Namespace)},
		{"Meanwhile", "the pods are replaced one by one, more than once; the role moves by planned failovers, as in any update"},
		{"Loss", "nothing"},
		{"Undo", "none: encryption cannot be turned off again"},
		{"Instead", "make a new encrypted group, and load it from this one: then nothing was ever in the clear on its volumes"},
	}
}

func encryptionNow(g *v1alpha1.MysqlFailoverGroup) string {
	if at := g.Status.EncryptionAtRest; at != nil {
		return "keyrings: " + versionsOf(g)
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEncryptionReady); c != nil {
		return c.Reason
	}
	return "not encrypted"
}

// next says what is left to do.
func (op *adoptOp) next(g *v1alpha1.MysqlFailoverGroup) string {
	list := fmt.Sprintf("list what is in the clear: kubectl mfg adopt %s -n %s --tables", op.Group, op.Namespace)
	if n := keyringStatusOf(g, g.Status.ActiveSite).Coverage.UnencryptedTablespaces; n > 0 {
		return fmt.Sprintf("%d tablespaces of %s are in the clear still\n  %s", n, g.Status.ActiveSite, list)
	}
	return "no tablespace of users was seen in the clear\n  " + list
}

func (op *adoptOp) followAdoption(ctx context.Context, env Environment, c Cluster, rep *requestReport) (int, error) {
	began, said := env.Now(), ""
	var last *v1alpha1.MysqlFailoverGroup
	g, err := op.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		last = g
		if words := adoptionWords(g); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return g.Status.EncryptionAtRest != nil && g.Status.EncryptionAtRest.Sealed
	})
	if err != nil {
		return exitError, op.unsealedSites(last, err)
	}
	rep.Outcome, rep.Epoch = outcomeDone, g.Status.Epoch
	rep.Message = "the keyring of every site is sealed; " + op.next(g)
	return op.finish(env, rep)
}

// unsealedSites adds to the end of the waiting what is to be done about each site that is not sealed.
func (op *adoptOp) unsealedSites(g *v1alpha1.MysqlFailoverGroup, err error) error {
	var own *coded
	if g == nil || !errors.As(err, &own) {
		return err
	}
	text := err.Error()
	for _, s := range g.Spec.Sites {
		if k := keyringStatusOf(g, s.Name); k.Phase != v1alpha1.KeyringSealed && k.Phase != "" {
			text += fmt.Sprintf("\n  %s is half done, %s: %s", s.Name, keyringPhase(k), (&rotateOp{request: op.request}).repair(k))
		}
	}
	return &coded{code: own.code, err: fmt.Errorf("%s\n  to wait on: kubectl mfg adopt %s -n %s", text, op.Group, op.Namespace)}
}

// adoptionWords say how far each site is.
func adoptionWords(g *v1alpha1.MysqlFailoverGroup) string {
	if g.Status.EncryptionAtRest == nil {
		if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEncryptionReady); c != nil {
			return c.Reason + ": " + c.Message
		}
		return "asked the operator"
	}
	var words []string
	for _, s := range g.Spec.Sites {
		words = append(words, s.Name+" "+keyringPhase(keyringStatusOf(g, s.Name)))
	}
	return strings.Join(words, "; ")
}
