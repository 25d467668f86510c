// SPDX-License-Identifier: Apache-2.0

// Package renew asks the operator for another certificate, or another authority, of a group.
package renew

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Bounds of the time that clients have to trust another authority, and its default; the operator has the same.
const (
	LeastGrace = 2 * time.Minute
	MostGrace  = 30 * 24 * time.Hour
	UsualGrace = 24 * time.Hour
)

// Op is `kubectl mfg certificates renew`.
type Op struct {
	request.Request
	Authority bool
	// Grace is how long clients have another authority before it signs; 0 is the usual time.
	Grace time.Duration
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	switch {
	case op.Grace != 0 && !op.Authority:
		return fmt.Errorf("--grace goes with --authority")
	case op.Grace != 0 && (op.Grace < LeastGrace || op.Grace > MostGrace):
		return fmt.Errorf("--grace must be from %s to %s", LeastGrace, MostGrace)
	}
	return op.Request.Validate()
}

// value returns the annotation's value.
func (op *Op) value() string {
	switch {
	case !op.Authority:
		return "server"
	case op.Grace != 0:
		return "ca=" + op.Grace.String()
	}
	return "ca"
}

// Run asks for it and follows the progress.
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
	change := map[string]string{v1alpha1.AnnotationRotateCertificate: value}
	what, plan := "certificate", op.plan()
	if op.Authority {
		what = "certificate authority"
	}
	op.ShowPlan(env, fmt.Sprintf("Renew the %s of %s (namespace %s)", what, op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Renew it?"); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("certificates renew", plan, change)
	if _, err := op.Submit(ctx, env, c, change, check); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Requested("asked for", op.look())
	if !op.Wait {
		return op.Finish(env, rep)
	}
	if err := op.follow(ctx, env, c, value, rep); err != nil {
		return cli.ExitError, err
	}
	return op.Finish(env, rep)
}

func (op *Op) look() string {
	return fmt.Sprintf("kubectl mfg certificates %s -n %s", op.Group, op.Namespace)
}

// allowed refuses what the operator would refuse, and what would replace another order. It joins an equal one.
func (op *Op) allowed(g *v1alpha1.MysqlFailoverGroup, value string) error {
	tls := g.Spec.TLS
	switch other, is := g.Annotations[v1alpha1.AnnotationRotateCertificate]; {
	case tls == nil:
		return cli.Refused("refused: %s has no TLS (spec.tls), so it has no certificates\n  how to give it some while it serves: docs/tls.md", op.Group)
	case tls.IssuerRef != nil:
		return cli.Refused("refused: cert-manager makes the certificate of %s (spec.tls.issuerRef)\n  renew it there: cmctl renew -n %s mysql-%s", op.Group, op.Namespace, op.Group)
	case !tls.Made():
		return cli.Refused("refused: the operator does not make the certificate of %s\n  renew it in Secret %s; the sites take it within minutes, without a restart", op.Group, tls.SecretName)
	case is && other != value:
		return cli.Refused("refused: a new certificate was requested, and the operator has not answered yet (%s)\n  see how far it is: %s", other, op.look())
	}
	return nil
}

func (op *Op) plan() []screen.Line {
	if !op.Authority {
		return []screen.Line{
			{Label: "Makes", Text: "another certificate in Secret " + v1alpha1.MadeTLSSecret(op.Group) + ", by the same authority"},
			{Label: "After", Text: "the sites take it within minutes, without a restart"},
			{Label: "Meanwhile", Text: "connections that are open stay; clients, roles and pods are not touched"},
		}
	}
	grace := op.Grace
	if grace == 0 {
		grace = UsualGrace
	}
	return []screen.Line{
		{Label: "Makes", Text: "another authority, which is put beside the one that signs into ca.crt of Secret " + v1alpha1.MadeTLSSecret(op.Group)},
		{Label: "Then", Text: fmt.Sprintf("it signs once every site trusts it and %s have passed; the former one leaves ca.crt when every site shows the new certificate", grace)},
		{Label: "Clients", Text: "that keep a copy of ca.crt have to take the new file in that time"},
		{Label: "Meanwhile", Text: "connections that are open stay; roles and pods are not touched; a site that is away is waited for"},
	}
}

// follow shows how far it is until the order is answered.
func (op *Op) follow(ctx context.Context, env cli.Environment, c request.Cluster, value string, rep *request.Report) error {
	began, said := env.Now(), ""
	g, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if words := progress(g); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return !op.Stands(g, v1alpha1.RequestRotateCertificate, value)
	})
	if err != nil {
		return err
	}
	answer := op.Answer(g, v1alpha1.RequestRotateCertificate)
	switch {
	case rep.Take(answer):
		rep.Message = "done: " + rep.Message
	case answer == nil:
		rep.Next = "see what became of it: " + op.look()
	}
	return nil
}

// progress says how far it is, as the operator does.
func progress(g *v1alpha1.MysqlFailoverGroup) string {
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionTLSReady)
	if c == nil || c.Reason == string(v1alpha1.ReasonAsExpected) {
		return "asked the operator"
	}
	return c.Message
}
