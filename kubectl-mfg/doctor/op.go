// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Cluster is what an examination needs of the cluster.
type Cluster interface {
	mysqlclient.Cluster
	// Live asks the operator for the status of a group.
	Live(ctx context.Context, operatorNamespace, namespace, group string) (wire.StatusList, error)
	// Clock returns the time of the API server, and how long it took to answer.
	Clock(ctx context.Context) (server time.Time, took time.Duration, err error)
	// EscrowChain returns the certificates that the operator's escrow endpoint shows.
	EscrowChain(ctx context.Context, operatorNamespace string) ([]*x509.Certificate, error)
}

// Op is `kubectl mfg doctor`.
type Op struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	Color             string
	Output            cli.Output
}

// Validate checks only the command line.
func (op *Op) Validate() error { return nil }

// Run examines a group and draws the findings.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	rep, err := op.Examine(ctx, env, c)
	if err != nil {
		return cli.ExitError, err
	}
	code := Code(rep)
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	var lines []screen.Finding
	for _, f := range rep.Findings {
		lines = append(lines, screen.Finding{Level: string(f.Level), Check: f.Check, Message: f.Message, Remedies: f.Remedies})
	}
	fmt.Fprint(env.Out, screen.Findings(op.Group, op.Namespace, lines, screen.Options{Width: width, Color: cli.Colored(op.Color, env)}))
	return code, nil
}

// Code is degraded only for a failure: a warning needs thought, and an unknown is no judgement.
func Code(rep Report) int {
	if rep.Worst() == Fail {
		return cli.ExitDegraded
	}
	return cli.ExitHealthy
}

// Examine gathers what is known around a group, and judges it.
func (op *Op) Examine(ctx context.Context, env cli.Environment, c Cluster) (Report, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return Report{}, err
	}
	w := World{Group: g, Kube: c.Kube(), OperatorNamespace: op.OperatorNamespace}
	var view report.LiveView
	list, err := c.Live(ctx, op.OperatorNamespace, op.Namespace, op.Group)
	if err == nil {
		w.OperatorTime, w.OperatorVersion, view.Status = list.IssuedAt, list.Operator, list
		w.Asked = env.Now()
	} else {
		view = live.Unanswered(err, op.OperatorNamespace)
		w.OperatorMissing, w.OperatorDown = view.Missing, view.Down
	}
	w.Now = env.Now()
	w.ServerTime, w.ServerTook, w.ServerErr = c.Clock(ctx)
	w.Escrow = op.escrow(ctx, c, g)
	w.CacheCertificate = cacheCertificateOf(ctx, c, g)
	w.BackupSecrets = lookForBackupSecrets(ctx, c, g)
	view.Now = w.Now
	rep := report.Build(g, view)
	w.Forecast, w.Problems, w.Summary = rep.Forecast, rep.Problems, rep.Summary
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	findings := Examine(ctx, w)
	return Report{
		APIVersion: report.APIVersion, Kind: "MfgDoctorReport", Metadata: report.Metadata{Name: op.Group, Namespace: op.Namespace},
		Findings: findings,
	}, ctx.Err()
}
