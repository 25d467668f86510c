// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// rotateOp is `kubectl mfg rotate`.
type rotateOp struct {
	request
	Site        string
	AllReplicas bool
	All         bool
	To          string
	Restart     bool

	// wanted are the sites that a run which is refused leaves; nil until the group was read.
	wanted []string
}

func (a *app) rotateCommand() *cobra.Command {
	op := rotateOp{}
	cmd := &cobra.Command{
		Use:   "rotate GROUP --site SITE | --all-replicas | --all",
		Short: "Give sites new master keys, without loss",
		Long: `Give sites new master keys, of InnoDB and of the binary log. A site is rotated while it is a replica: its pod is replaced
by one whose keyring can be written, both keys are rotated without a transaction, the new keyring goes into escrow, and the
pod is replaced by a sealed one. Data is not rewritten.

--all rotates the replicas one by one, moves the role to one of them by a planned failover, and rotates the former active
site. Nothing is kept on this machine: when it began, and the keyring version that each site had then, is an annotation of
the group (` + v1alpha1.AnnotationRotation + `), and a site is done once status.encryptionAtRest.sites[].rotatedVersion is
newer than that. So after Ctrl-C, or from another machine, the same command goes on with the sites that are left, and takes
the annotation off at the end. --restart forgets what was done and begins with every site anew. What was begun more than 24
hours ago is not gone on with: the command is refused until --restart is given. --all-replicas does its part of what --all
began, and leaves the rest to --all, also with --restart.

Ctrl-C ends only the waiting: a rotation that was asked for is finished by the operator (exit code 4). While "waits:" is told
nothing is asked for yet: a wait that ends there leaves nothing that goes on (exit code 5).

` + exitCodes,
		Example: `  # What would be done, in which order? Nothing is sent
  kubectl mfg rotate orders --all --dry-run=client

  # All sites; asks, shows each step, moves the role once. After Ctrl-C: the same again
  kubectl mfg rotate orders --all

  # All but the active site: the role stays
  kubectl mfg rotate orders --all-replicas

  # One replica, from a script
  kubectl mfg rotate orders --site frankfurt --yes -o json`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.Site, "site", "", "Rotate this replica.")
	f.BoolVar(&op.AllReplicas, "all-replicas", false, "Rotate every site but the active one.")
	f.BoolVar(&op.All, "all", false, "Rotate every site. The role moves to another one.")
	f.StringVar(&op.To, "to", "", "With --all: the site that is to become active. Default: the one that would take over by itself.")
	f.BoolVar(&op.Restart, "restart", false, "Rotate also the sites that an earlier run, which did not come to its end, has rotated.")
	out := op.bind(cmd, 15*time.Minute)
	f.Lookup("timeout").Usage = "How long to wait for each step. What was asked for goes on after that."
	_ = cmd.RegisterFlagCompletionFunc("site", a.completeSiteFlag)
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *rotateOp) validate() error {
	chosen := 0
	for _, is := range []bool{op.Site != "", op.AllReplicas, op.All} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return errors.New("one of --site SITE, --all-replicas and --all is needed: which sites are to be rotated?")
	case op.To != "" && !op.All:
		return errors.New("--to goes with --all: nothing else moves the role")
	case op.Restart && op.Site != "":
		return errors.New("--restart goes with --all-replicas and --all: --site always rotates")
	case !op.Wait && op.Site == "":
		return errors.New("--wait=false goes with --site: each step of the others waits for the one before")
	}
	return op.request.validate()
}

func (op *rotateOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	view, err := op.look(ctx, c)
	if err != nil {
		return exitError, err
	}
	now, _ := op.clock(ctx, env, c) // a campaign may be gone on with from another machine, whose clock is another one
	r, err := op.begin(view.group, now)
	if err != nil {
		return exitError, err
	}
	plan := r.plan(view)
	op.showPlan(env, r.title(), plan)
	rep := op.rotationReport(plan, r)
	if r.over(view.group) {
		return r.nothingLeft(ctx, env, c, view, rep)
	}
	if err := op.confirm(ctx, env, r.question()); err != nil {
		return exitError, err
	}
	if op.DryRun != dryRunNone {
		if _, err := op.submit(ctx, env, c, rep.Change, r.check); err != nil {
			return exitError, err
		}
		return exitHealthy, op.dryRun(env, rep)
	}
	r.env, r.cluster, r.rep = env, c, rep
	return r.run(ctx)
}

// begin reads what is to be done from the group alone, and refuses what it shows to be impossible.
func (op *rotateOp) begin(g *v1alpha1.MysqlFailoverGroup, now time.Time) (*rotation, error) {
	r := &rotation{op: op, campaign: newCampaign(g, now), done: map[string]bool{}}
	r.campaign.replicas = op.AllReplicas
	text, had := g.Annotations[v1alpha1.AnnotationRotation]
	if old, err := parseCampaign(text); had && err == nil && op.AllReplicas && op.Restart {
		// What --all began is begun anew by its part of it; the active site stays due.
		r.campaign.replicas = old.replicas || old.rotated(g, g.Status.ActiveSite)
	}
	if had && op.Site == "" && !op.Restart {
		campaign, err := parseCampaign(text)
		if err != nil {
			return nil, refused("refused: the annotation %s cannot be read (%v)\n  to begin with every site anew: %s --restart", v1alpha1.AnnotationRotation, err, op.again())
		}
		if age := now.Sub(campaign.began); age > campaignLasts {
			return nil, refused("refused: a rotation that was begun at %s (%s ago) was not finished, and going on would leave out the sites that got their keys then\n  to begin with every site anew: %s --restart",
				campaign.began.Format(time.RFC3339), duration.HumanDuration(age), op.again())
		}
		campaign.replicas = campaign.replicas && op.AllReplicas
		r.campaign, r.resumed, r.noted = campaign, true, campaign.String() == text
	}
	op.wanted = append([]string{}, r.left(g)...)
	if err := r.check(g); err != nil {
		return nil, err
	}
	if err := r.choose(g); err != nil {
		return nil, err
	}
	left := r.left(g)
	r.before = slices.DeleteFunc(r.scope(g), func(site string) bool { return slices.Contains(left, site) })
	if r.active = g.Status.ActiveSite; len(left) > 0 && !r.joined(g) {
		r.first = left[0]
	}
	return r, nil
}

// again is the command that goes on with what is left.
func (op *rotateOp) again() string {
	scope := "--all"
	switch {
	case op.Site != "":
		scope = "--site " + op.Site
	case op.AllReplicas:
		scope = "--all-replicas"
	case op.To != "":
		scope += " --to " + op.To
	}
	return fmt.Sprintf("kubectl mfg rotate %s -n %s %s", op.Group, op.Namespace, scope)
}
