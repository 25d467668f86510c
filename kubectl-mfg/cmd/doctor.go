// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// doctorOp is `kubectl mfg doctor`.
type doctorOp struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	Color             string
	Output            output
}

func (a *app) doctorCommand() *cobra.Command {
	op := doctorOp{}
	cmd := &cobra.Command{
		Use:   "doctor GROUP",
		Short: "Check what the operator cannot check, but you can",
		Long: `Check around a group what the operator has no right to see, but a person may: whether Secrets are encrypted at rest
and who can read them, swap and readiness of nodes, sites that share a node, clocks, volumes that can grow, budgets
against eviction, whether sites believe the escrow endpoint, who leads, and what would block a failover.

Nothing is changed, and no Secret is read. What you have no right to see is said to be unknown, with the right that is
missing. Exit code 3 means that a finding is FAIL; with WARN and UNKNOWN alone it is 0.

` + exitCodes,
		Example: `  # Before going into production, and once in a while
  kubectl mfg doctor orders

  # Only what is wrong
  kubectl mfg doctor orders -o jsonpath='{range .findings[?(@.level=="FAIL")]}{.check}: {.message}{"\n"}{end}'`,
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

func (op *doctorOp) validate() error { return nil }

func (op *doctorOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	rep, err := op.examine(ctx, env, c)
	if err != nil {
		return exitError, err
	}
	code := doctorCode(rep)
	if op.Output.printer != nil {
		return code, op.Output.print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	var lines []screen.Finding
	for _, f := range rep.Findings {
		lines = append(lines, screen.Finding{Level: string(f.Level), Check: f.Check, Message: f.Message, Remedies: f.Remedies})
	}
	fmt.Fprint(env.Out, screen.Findings(op.Group, op.Namespace, lines, screen.Options{Width: width, Color: colored(op.Color, env)}))
	return code, nil
}

// doctorCode is degraded for a failure alone: a warning is to be thought about, and what is unknown is no judgement.
func doctorCode(rep doctor.Report) int {
	if rep.Worst() == doctor.Fail {
		return exitDegraded
	}
	return exitHealthy
}

func (op *doctorOp) examine(ctx context.Context, env Environment, c Cluster) (doctor.Report, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return doctor.Report{}, err
	}
	w := doctor.World{Group: g, Kube: c.Kube(), OperatorNamespace: op.OperatorNamespace}
	var view report.LiveView
	list, err := c.Live(ctx, op.OperatorNamespace, op.Namespace, op.Group)
	if err == nil {
		w.OperatorTime, w.OperatorVersion, view.Status = list.IssuedAt, list.Operator, list
		w.Asked = env.Now()
	} else {
		view = unanswered(err, op.OperatorNamespace)
		w.OperatorMissing, w.OperatorDown = view.Missing, view.Down
	}
	w.Now = env.Now()
	w.ServerTime, w.ServerTook, w.ServerErr = c.Clock(ctx)
	w.Escrow = op.escrow(ctx, c, g)
	rep := report.Build(g, view)
	w.Forecast, w.Problems = rep.Forecast, rep.Problems
	if ctx.Err() != nil {
		return doctor.Report{}, ctx.Err()
	}
	findings := doctor.Examine(ctx, w)
	return doctor.Report{
		APIVersion: report.APIVersion, Kind: "MfgDoctorReport", Metadata: report.Metadata{Name: op.Group, Namespace: op.Namespace},
		Findings: findings,
	}, ctx.Err()
}
