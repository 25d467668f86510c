// SPDX-License-Identifier: Apache-2.0

// Package preflight looks at a cluster before mfg is installed: whether it can be, and what would be a surprise later. It only reads.
package preflight

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Cluster is what the preflight looks at.
type Cluster interface {
	Kube() kubernetes.Interface
	// Clock returns the time of the API server, and how long it took to answer.
	Clock(ctx context.Context) (server time.Time, took time.Duration, err error)
}

// Op is `kubectl mfg doctor --preflight`.
type Op struct {
	// Namespace is for the future group, OperatorNamespace for the operator.
	Namespace         string
	OperatorNamespace string
	Color             string
	Output            cli.Output
}

// Validate has nothing to refuse.
func (op *Op) Validate() error { return nil }

// limit bounds all looks together.
const limit = 30 * time.Second

// look is one check of the preflight.
type look struct {
	name string
	ask  func(context.Context, *Op, world) []doctor.Finding
}

// world is what the looks see.
type world struct {
	kube kubernetes.Interface
	// server is the API server's clock, to the second; now is this machine's at the same moment.
	server, now time.Time
	clockErr    error
}

// looks are all, in the order in which a person would want to read them.
var looks = []look{
	{"Kubernetes", kubernetesVersion},
	{"rights", rights},
	{"installed", installed},
	{"storage", storage},
	{"nodes", nodes},
	{"clocks", clocks},
	{"network policy", networkPolicy},
	{"cert-manager", certManager},
}

// Run looks and draws the findings.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w := world{kube: c.Kube()}
	var took time.Duration
	w.server, took, w.clockErr = c.Clock(ctx)
	w.now = env.Now().Add(-took / 2)
	rep := doctor.Report{APIVersion: report.APIVersion, Kind: "MfgDoctorReport", Metadata: report.Metadata{Name: "preflight", Namespace: op.Namespace}}
	for _, l := range looks {
		for _, f := range l.ask(ctx, op, w) {
			f.Check = l.name
			rep.Findings = append(rep.Findings, f)
		}
	}
	code := doctor.Code(rep)
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	var lines []screen.Finding
	for _, f := range rep.Findings {
		lines = append(lines, screen.Finding{Level: string(f.Level), Check: f.Check, Message: f.Message, Remedies: f.Remedies})
	}
	fmt.Fprint(env.Out, screen.Findings("before the install", op.Namespace, lines, screen.Options{Width: width, Color: cli.Colored(op.Color, env)}))
	return code, nil
}

func found(level doctor.Level, next wire.Remedy, format string, args ...any) doctor.Finding {
	f := doctor.Finding{Level: level, Message: fmt.Sprintf(format, args...)}
	if next != (wire.Remedy{}) {
		f.Remedies, f.Remedy = []wire.Remedy{next}, next.String()
	}
	return f
}

func one(f doctor.Finding) []doctor.Finding { return []doctor.Finding{f} }

// unseen says that a look was not possible, and which right is missing.
func unseen(err error, kind string) []doctor.Finding {
	if apierrors.IsForbidden(err) {
		return one(found(doctor.Unknown, wire.Remedy{Text: "ask a person for whom this command says yes", Command: "kubectl auth can-i list " + kind}, "you may not list %s", kind))
	}
	return one(found(doctor.Unknown, wire.Remedy{}, "%v", err))
}
