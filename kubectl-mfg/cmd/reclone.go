// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// recloneOp is `kubectl mfg reclone`.
type recloneOp struct {
	request
	Site            string
	ConfirmDataLoss bool
}

func (a *app) recloneCommand() *cobra.Command {
	op := recloneOp{}
	cmd := &cobra.Command{
		Use:   "reclone GROUP SITE",
		Short: "Throw a site's data away and copy it anew from the active site",
		Long: `Throw a site's data away and copy it anew from the active site: for a site that has diverged, or cannot catch up.

The operator refuses where that would destroy the only copy of something: transactions that nobody else has, what a former
active site may have alone, or the only healthy copy beside the active site. The plan says so. Save what is needed, then
add --confirm-data-loss.

` + exitCodes,
		Example: `  # What does only madrid have?
  kubectl mfg status orders -o jsonpath='{.sites[?(@.name=="madrid")].errantSet}'

  # Copy it anew
  kubectl mfg reclone orders madrid

  # It holds transactions that nobody else has, and they may go
  kubectl mfg reclone orders madrid --confirm-data-loss`,
		Args:              exactly("GROUP", "SITE"),
		ValidArgsFunction: a.completeGroupAndSite,
	}
	cmd.Flags().BoolVar(&op.ConfirmDataLoss, "confirm-data-loss", false, "Throw away also what only this site has.")
	out := op.bind(cmd, 2*time.Hour)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		op.Site = args[1]
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *recloneOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	view, err := op.look(ctx, c)
	if err != nil {
		return exitError, err
	}
	check := func(g *v1alpha1.MysqlFailoverGroup) error { return op.allowed(g) }
	if err := check(view.group); err != nil {
		return exitError, err
	}
	value := op.Site
	if op.ConfirmDataLoss {
		value += recloneConfirmed
	}
	change := map[string]string{v1alpha1.AnnotationRecloneSite: value}
	plan := op.plan(view)
	op.showPlan(env, fmt.Sprintf("Copy site %s of %s (namespace %s) anew", op.Site, op.Group, op.Namespace), plan)
	if err := op.confirmName(ctx, env, "All data on "+op.Site+" is thrown away."); err != nil {
		return exitError, err
	}
	rep := op.report("reclone", plan, change)
	rep.Site, rep.From = op.Site, view.report.ActiveSite
	if _, err := op.submit(ctx, env, c, change, check); err != nil {
		return exitError, err
	}
	if op.DryRun != dryRunNone {
		return exitHealthy, op.dryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = outcomeRequested, "asked for; see how far it is: kubectl mfg status "+op.Group+" -n "+op.Namespace+" -w"
	if !op.Wait {
		return op.finish(env, rep)
	}
	if err := op.followClone(ctx, env, c, value, rep); err != nil {
		return exitError, err
	}
	return op.finish(env, rep)
}

func (op *recloneOp) allowed(g *v1alpha1.MysqlFailoverGroup) error {
	if _, known := roleOf(g, op.Site); !known {
		return op.noSuchSite(g)
	}
	if g.Status.ActiveSite == op.Site {
		return refused("refused: %s is the active site\n  move the role first: kubectl mfg failover %s -n %s --to SITE", op.Site, op.Group, op.Namespace)
	}
	return notMoving(g)
}

func (op *recloneOp) plan(view outlook) []planLine {
	s, _ := view.site(op.Site)
	return []planLine{
		{"Now", fmt.Sprintf("%s is %s", op.Site, strings.ToLower(s.State))},
		{"After", fmt.Sprintf("%s holds a copy of %s and replicates from it", op.Site, orDash(view.report.ActiveSite))},
		{"Meanwhile", op.Site + " takes no reads and is no candidate; " + orDash(view.report.ActiveSite) + " reads all its data once"},
		{"Loss", op.loss(view)},
		{"Undo", "none"},
	}
}

func (op *recloneOp) followClone(ctx context.Context, env Environment, c Cluster, value string, rep *requestReport) error {
	began, said := env.Now(), ""
	g, err := op.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if words := cloneWords(g, op.Site); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return !op.stands(g, v1alpha1.RequestRecloneSite, value)
	})
	if err != nil {
		return err
	}
	if rep.take(op.answer(g, v1alpha1.RequestRecloneSite)) {
		rep.Message = op.Site + ": done, " + rep.Message
		return nil
	}
	op.refusal(rep)
	return nil
}

// cloneWords say how far the copy is.
func cloneWords(g *v1alpha1.MysqlFailoverGroup, site string) string {
	for _, s := range g.Status.Sites {
		if s.Name != site {
			continue
		}
		words := strings.ToLower(string(s.State))
		if p := s.Clone; p != nil {
			words = fmt.Sprintf("%s, %s %d %% from %s", words, p.Stage, p.Percent, orDash(p.Source))
			if p.ETASeconds != nil {
				words += fmt.Sprintf(", about %s left", time.Duration(*p.ETASeconds)*time.Second)
			}
		}
		return words
	}
	return "asked the operator"
}
