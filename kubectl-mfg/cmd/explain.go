// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// explainOp is `kubectl mfg explain`.
type explainOp struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	Color             string
	Output            output
}

func (a *app) explainCommand() *cobra.Command {
	op := explainOp{}
	cmd := &cobra.Command{
		Use:   "explain GROUP",
		Short: "Say why a group does, or does not, fail over right now",
		Long: `Say why a group does, or does not, fail over right now: each rule with what it was asked and what it says, each site
with why it ranks where it does, what would be lost, and what would keep a failover from happening by itself.

It is the operator that answers, by the functions that decide, from what they saw at the last look. Where it cannot be
asked, what the custom resource says is shown, and said to be no more than that. Exit code 3 means that a failover would not
happen by itself, or that the operator did not say that it would.

` + exitCodes,
		Example: `  # Why is nothing happening?
  kubectl mfg explain orders

  # Would a failover happen by itself if the active site died now? Exit code 3 if not
  kubectl mfg explain orders -o jsonpath='{.explanation.blockers}'

  # Why would this site not take over?
  kubectl mfg explain orders -o jsonpath='{.explanation.candidates[?(@.site=="madrid")].unfit}'`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Color, "color", colorAuto, "Colour: "+strings.Join(colors, "|")+".")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *explainOp) validate() error { return nil }

func (op *explainOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	rep, err := op.gather(ctx, c)
	if err != nil {
		return exitError, err
	}
	code := exitHealthy
	if rep.Blocked() {
		code = exitDegraded
	}
	if op.Output.printer != nil {
		return code, op.Output.print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.Explanation(rep, screen.Options{Width: width, Color: colored(op.Color, env), Now: env.Now()}))
	return code, nil
}

func (op *explainOp) gather(ctx context.Context, c Cluster) (report.Explained, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return report.Explained{}, err
	}
	list, err := c.Explain(ctx, op.OperatorNamespace, op.Namespace, op.Group)
	if ctx.Err() != nil {
		return report.Explained{}, ctx.Err()
	}
	view, explanation := viewOf(list, err, op.OperatorNamespace)
	return report.BuildExplained(g, view, explanation), nil
}

// viewOf splits an explained answer into what other reports are made of, and the explanation.
func viewOf(list wire.ExplainedList, err error, operatorNamespace string) (report.LiveView, *wire.Explanation) {
	if err != nil {
		return unanswered(err, operatorNamespace), nil
	}
	view := report.LiveView{Status: wire.StatusList{Operator: list.Operator, IssuedAt: list.IssuedAt}}
	var e *wire.Explanation
	for _, g := range list.Groups {
		view.Status.Groups = append(view.Status.Groups, g.GroupStatus)
		e = g.Explanation
	}
	return view, e
}
