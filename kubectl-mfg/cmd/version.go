// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// versionOp is `kubectl mfg version`.
type versionOp struct {
	ClientOnly        bool
	Namespace         string
	OperatorNamespace string
	Output            cli.Output
	Client            string
}

// versionReport is the answer in machine form.
type versionReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Client     string `json:"client"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Operator   string `json:"operator,omitempty"`
	Verdict    string `json:"verdict,omitempty"`
}

// newVersionReport says what is known without asking the operator.
func newVersionReport(client string) versionReport {
	return versionReport{
		APIVersion: report.APIVersion, Kind: "MfgVersionReport",
		Client: client, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// fits adds the operator's version, and whether it fits.
func (v *versionReport) fits(operator string) {
	v.Operator, v.Verdict = operator, versionVerdict(v.Client, operator)
}

func (a *app) versionCommand() *cobra.Command {
	op := versionOp{}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this plugin and of the operator, and whether they match",
		Args:  atMost(0),
	}
	cmd.Flags().BoolVar(&op.ClientOnly, "client", false, "Show the version of this plugin only, without contacting a cluster.")
	cmd.Flags().StringVar(&op.OperatorNamespace, "operator-namespace", live.DefaultNamespace, "Namespace in which the operator runs.")
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if op.Output, err = out(); err != nil {
			return err
		}
		op.Client = buildVersion()
		if op.ClientOnly {
			a.code, err = op.run(cmd.Context(), a.env, nil)
			return err
		}
		if op.Namespace, _, err = a.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return fmt.Errorf("read kubeconfig: %w", err)
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.run(ctx, a.env, c) })
	}
	return cmd
}

// Validate checks only the command line.
func (op *versionOp) Validate() error {
	if op.OperatorNamespace == "" {
		return errors.New("--operator-namespace is empty")
	}
	return nil
}

// run shows what it has: without the operator's answer, the client's version still goes to stdout.
func (op *versionOp) run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	v := newVersionReport(op.Client)
	var failure error
	if !op.ClientOnly {
		// Asked about one namespace, because only the version matters.
		list, err := c.Live(ctx, op.OperatorNamespace, op.Namespace, "")
		if err != nil {
			why, _ := live.WhyNot(err, op.OperatorNamespace)
			failure = errors.New("operator not reachable: " + why)
		} else {
			v.fits(list.Operator)
		}
	}
	if err := op.write(env, v); err != nil {
		return cli.ExitError, err
	}
	return cli.ExitHealthy, failure
}

func (op *versionOp) write(env cli.Environment, v versionReport) error {
	if op.Output.Printer != nil {
		return op.Output.Print(env.Out, &v)
	}
	fmt.Fprintf(env.Out, "Client    %s (%s, %s)\n", v.Client, v.Go, v.Platform)
	if v.Operator != "" {
		fmt.Fprintf(env.Out, "Operator  %s\nVerdict   %s\n", v.Operator, v.Verdict)
	}
	return nil
}

// versionVerdict says whether a plugin works with an operator: they may be one minor version apart.
func versionVerdict(client, operator string) string {
	c, errC := version.ParseSemantic(client)
	o, errO := version.ParseSemantic(operator)
	switch {
	case client == operator:
		return "compatible"
	case errC != nil || errO != nil:
		return "unknown: not both are released versions"
	case c.Major() != o.Major() || apart(c.Minor(), o.Minor()) > 1:
		if c.LessThan(o) {
			return "not supported: upgrade this plugin to " + operator
		}
		return "not supported: use the plugin of version " + operator + ", or upgrade the operator"
	default:
		return "compatible"
	}
}

func apart(a, b uint) uint { return max(a, b) - min(a, b) }

// buildVersion returns what the Go toolchain wrote into this binary.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
