// SPDX-License-Identifier: Apache-2.0

// Package adopt encrypts a group that already serves, and lists what is unencrypted until it is rebuilt.
package adopt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Confirmed is what the operator must read before it encrypts a group that already serves.
const Confirmed = "confirm"

// Op is `kubectl mfg adopt`.
type Op struct {
	request.Request
	Tables bool
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	if op.Tables && op.DryRun != request.DryRunNone {
		return errors.New("--tables changes nothing: it needs no --dry-run")
	}
	return op.Request.Validate()
}

// Run accepts encryption of a group that serves, or lists what is unencrypted.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	if op.Tables {
		return op.tables(ctx, env, c)
	}
	view, err := op.Look(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	if err := op.allowed(view.Group); err != nil {
		return cli.ExitError, err
	}
	change, plan := map[string]string{}, op.plan(view.Group)
	if view.Group.Annotations[v1alpha1.AnnotationEncryptionAdopt] != Confirmed {
		change[v1alpha1.AnnotationEncryptionAdopt] = Confirmed
	}
	rep := op.Report("adopt", plan, change)
	if at := view.Group.Status.EncryptionAtRest; at != nil && at.Sealed {
		rep.Change, rep.Outcome, rep.Message = map[string]string{}, cli.OutcomeDone, "nothing was changed: the group is encrypted already; "+op.next(view.Group)
		return op.Finish(env, rep)
	}
	op.ShowPlan(env, fmt.Sprintf("Encrypt %s (namespace %s), which serves already", op.Group, op.Namespace), plan)
	if len(change) > 0 {
		if err := op.ConfirmName(ctx, env, "What is there stays in the clear until it is rebuilt, and encryption cannot be turned off again."); err != nil {
			return cli.ExitError, err
		}
		if _, err := op.Submit(ctx, env, c, change, op.allowed); err != nil {
			return cli.ExitError, err
		}
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	if !op.Wait {
		rep.Requested("asked for", "kubectl mfg status "+op.Group+" -n "+op.Namespace+" -w")
		return op.Finish(env, rep)
	}
	return op.followAdoption(ctx, env, c, rep)
}

// allowed refuses what the custom resource alone shows to be impossible.
func (op *Op) allowed(g *v1alpha1.MysqlFailoverGroup) error {
	e := g.Spec.EncryptionAtRest
	if g.Spec.TLS == nil {
		return cli.Refused("refused: %s has no TLS, without which its sites cannot be cloned encrypted\n  give it TLS first, which takes two updates and no downtime (docs/tls.md), or make a new group with spec.tls and spec.encryptionAtRest, and move the data",
			op.Group)
	}
	if e == nil || !e.Enabled {
		return cli.Refused("refused: encryption is not asked for in the specification of %s\n  to turn it on (nothing is encrypted by that alone): kubectl patch mfg %s -n %s --type merge -p '{\"spec\":{\"encryptionAtRest\":{\"enabled\":true}}}'",
			op.Group, op.Group, op.Namespace)
	}
	if g.Annotations[v1alpha1.AnnotationEncryptionAdopt] == Confirmed || g.Status.EncryptionAtRest != nil {
		return nil // it only needs waiting, or is over
	}
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) {
		return cli.Refused("refused: %s is %s, and this replaces pods\n  to go on: kubectl mfg resume %s -n %s", op.Group, request.PausedNow(g), op.Group, op.Namespace)
	}
	return request.NotMoving(g)
}

func (op *Op) plan(g *v1alpha1.MysqlFailoverGroup) []screen.Line {
	active := cli.OrNoSite(g.Status.ActiveSite)
	return []screen.Line{
		{Label: "Now", Text: fmt.Sprintf("%s; %s is active under epoch %d", encryptionNow(g), active, g.Status.Epoch)},
		{Label: "After", Text: "every site has a keyring of its own, in escrow and sealed; redo, undo, binary and relay logs are encrypted from then on, and tables of new schemas"},
		{Label: "In clear", Text: "every table that is there, new tables of schemas that are there, and old binary logs: until they are rebuilt, changed and purged"},
		{Label: "Rebuild", Text: fmt.Sprintf("kubectl mfg adopt %s -n %s --tables lists the statements", op.Group, op.Namespace)},
		{Label: "Meanwhile", Text: "the pods are replaced one by one, more than once; the role moves by planned failovers, as in any update"},
		{Label: "Loss", Text: "nothing"},
		{Label: "Undo", Text: "none: encryption cannot be turned off again"},
		{Label: "Instead", Text: "make a new encrypted group, and load it from this one: then nothing was ever in the clear on its volumes"},
	}
}

func encryptionNow(g *v1alpha1.MysqlFailoverGroup) string {
	if at := g.Status.EncryptionAtRest; at != nil {
		return "keyrings: " + keyrings.VersionWords(g)
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEncryptionReady); c != nil {
		return c.Reason
	}
	return "not encrypted"
}

// next says what is left to do.
func (op *Op) next(g *v1alpha1.MysqlFailoverGroup) string {
	list := fmt.Sprintf("list what is in the clear: kubectl mfg adopt %s -n %s --tables", op.Group, op.Namespace)
	if n := keyrings.SiteStatus(g, g.Status.ActiveSite).Coverage.UnencryptedTablespaces; n > 0 {
		return fmt.Sprintf("%d tablespaces of %s are in the clear still\n  %s", n, g.Status.ActiveSite, list)
	}
	return "no tablespace of users was seen in the clear\n  " + list
}

func (op *Op) followAdoption(ctx context.Context, env cli.Environment, c Cluster, rep *request.Report) (int, error) {
	began, said := env.Now(), ""
	var last *v1alpha1.MysqlFailoverGroup
	g, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		last = g
		if words := adoptionWords(g); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return g.Status.EncryptionAtRest != nil && g.Status.EncryptionAtRest.Sealed
	})
	if err != nil {
		return cli.ExitError, op.unsealedSites(last, err)
	}
	rep.Outcome, rep.Epoch = cli.OutcomeDone, g.Status.Epoch
	rep.Message = "the keyring of every site is sealed; " + op.next(g)
	return op.Finish(env, rep)
}

// unsealedSites adds to the error of an ended wait what to do about each site that is not sealed.
func (op *Op) unsealedSites(g *v1alpha1.MysqlFailoverGroup, err error) error {
	var own *cli.Error
	if g == nil || !errors.As(err, &own) {
		return err
	}
	text := err.Error()
	for _, s := range g.Spec.Sites {
		if k := keyrings.SiteStatus(g, s.Name); k.Phase != v1alpha1.KeyringSealed && k.Phase != "" {
			text += fmt.Sprintf("\n  %s is half done, %s: %s", s.Name, keyrings.PhaseWords(k), keyrings.Repair(k, op.Group, op.Namespace))
		}
	}
	return &cli.Error{Code: own.Code, Err: fmt.Errorf("%s\n  to wait on: kubectl mfg adopt %s -n %s", text, op.Group, op.Namespace)}
}

// adoptionWords says how far each site is.
func adoptionWords(g *v1alpha1.MysqlFailoverGroup) string {
	if g.Status.EncryptionAtRest == nil {
		if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEncryptionReady); c != nil {
			return c.Reason + ": " + c.Message
		}
		return "asked the operator"
	}
	var words []string
	for _, s := range g.Spec.Sites {
		words = append(words, s.Name+" "+keyrings.PhaseWords(keyrings.SiteStatus(g, s.Name)))
	}
	return strings.Join(words, "; ")
}

// Cluster takes requests, and runs commands in pods.
type Cluster interface {
	request.Cluster
	mysqlclient.Cluster
}
