// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/bundle"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	mfgreport "github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// reportOp is `kubectl mfg report`.
type reportOp struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	File              string
	Lines             int64
	Timeout           time.Duration
}

func (a *app) reportCommand() *cobra.Command {
	op := reportOp{}
	cmd := &cobra.Command{
		Use:   "report GROUP",
		Short: "Collect what a helper needs, without secrets, as a tar.gz",
		Long: `Collect what a helper needs to know about a group into a tar.gz: the custom resource, pods, logs, events, Services,
volumes, nodes, the operator's pods and logs, its status and explanation, and the findings of kubectl mfg doctor.

No Secret is read. Values that look like passwords, tokens, keys or DSNs are removed from every file. What you have no
right to read is left out and listed in missing.txt, as is what a lost node does not send. If the time ends before everything
is read, the exit code is 3.`,
		Example: `  # Writes mfg-report-NAMESPACE-GROUP-TIME.tar.gz here
  kubectl mfg report orders

  # To a pipe
  kubectl mfg report orders -f - | tar tz`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVarP(&op.File, "file", "f", "", "File to write; - is stdout. Default: a name made of the group and the time.")
	cmd.Flags().Int64Var(&op.Lines, "lines", 5000, "How many lines of each log to take, from its end.")
	cmd.Flags().DurationVar(&op.Timeout, "timeout", 2*time.Minute, "How long to collect.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.run(ctx, a.env, c) })
	}
	return cmd
}

// Validate checks only the command line.
func (op *reportOp) Validate() error {
	switch {
	case op.Lines < 1:
		return errors.New("--lines must be above 0")
	case op.Timeout <= 0:
		return errors.New("--timeout must be above 0")
	}
	return nil
}

func (op *reportOp) run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, op.Timeout)
	defer cancel()
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	b := bundle.Collect(ctx, bundle.Options{
		Group: g, Kube: c.Kube(), OperatorNamespace: op.OperatorNamespace, OperatorSelector: live.Selector,
		Lines: op.Lines, Now: env.Now(), Extra: op.extra(ctx, env, c),
	})
	if err := op.write(env, b); err != nil {
		return cli.ExitError, err
	}
	for _, m := range b.Missing {
		fmt.Fprintf(env.ErrOut, "left out %s\n", m)
	}
	switch {
	case b.Cut && whole.Err() != nil:
		fmt.Fprintln(env.ErrOut, "the report is not complete: you ended it before everything was read; missing.txt names what was left out")
		return cli.ExitDegraded, nil
	case b.Cut:
		fmt.Fprintf(env.ErrOut, "the report is not complete: --timeout %s ended before everything was read; missing.txt names what was left out\n"+
			"  allow more time: kubectl mfg report %s -n %s --timeout %s\n", op.Timeout, op.Group, op.Namespace, 2*op.Timeout)
		return cli.ExitDegraded, nil
	}
	return cli.ExitHealthy, nil
}

// extra is what the plugin itself finds out: the operator's answer and the findings of doctor.
func (op *reportOp) extra(ctx context.Context, env cli.Environment, c Cluster) map[string][]byte {
	extra := map[string][]byte{}
	add := func(name string, content any, err error) {
		text, failed := escape.YAML(content)
		if err = errors.Join(err, failed); err != nil {
			extra[name+".error.txt"] = []byte(err.Error() + "\n")
			return
		}
		extra[name+".yaml"] = text
	}
	list, err := c.Explain(ctx, op.OperatorNamespace, op.Namespace, op.Group)
	add("status", list, err)
	doc := doctor.Op{Namespace: op.Namespace, Group: op.Group, OperatorNamespace: op.OperatorNamespace}
	findings, err := doc.Examine(ctx, env, c)
	add("doctor", findings, err)
	backups, err := c.Backups(ctx, op.Namespace, op.Group)
	if len(backups) > 0 || err != nil {
		add("backups", mfgreport.NewBackupList(backups), err)
	}
	version := newVersionReport(buildVersion())
	if list.Operator != "" {
		version.fits(list.Operator)
	}
	add("version", version, nil)
	return extra
}

func (op *reportOp) write(env cli.Environment, b *bundle.Bundle) error {
	if op.File == "-" {
		return b.Write(escape.Raw(env.Out))
	}
	name := op.File
	if name == "" {
		name = b.Root() + ".tar.gz"
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := errors.Join(b.Write(file), file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(env.Out, "%s: %d files\n", name, len(b.Names()))
	return nil
}
