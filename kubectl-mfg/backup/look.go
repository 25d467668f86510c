// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// List is `kubectl mfg backup list`.
type List struct {
	Common
	// Group is empty for all groups of the namespace.
	Group string
	Color string
}

// Validate checks only the command line.
func (op *List) Validate() error { return validColor(op.Color) }

func validColor(color string) error {
	if !slices.Contains(cli.Colors, color) {
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	}
	return nil
}

// Run lists the backups, the newest first.
func (op *List) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	all, err := c.Backups(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	if len(all) == 0 && op.Group != "" {
		if _, err := c.Group(ctx, op.Namespace, op.Group); err != nil {
			return cli.ExitError, err // a mistyped name has no backups either
		}
	}
	list := report.NewBackupList(all)
	code := cli.ExitHealthy
	if list.NeedsAttention() {
		code = cli.ExitDegraded
	}
	switch {
	case op.Output.Printer != nil:
		return code, op.Output.Print(env.Out, &list)
	case op.Output.Format == cli.OutputName:
		for _, b := range list.Items {
			fmt.Fprintln(env.Out, "mysqlbackup."+v1alpha1.GroupVersion.Group+"/"+b.Metadata.Name)
		}
		return code, nil
	case len(all) == 0:
		fmt.Fprintln(env.ErrOut, op.nothing())
		return code, nil
	}
	fmt.Fprint(env.Out, screen.Backups(list, op.Group == "", op.options(env, op.Color)))
	return code, nil
}

// nothing says that there are none: the objects go with a namespace, but the bucket's contents stay.
func (op *List) nothing() string {
	if op.Group == "" {
		return fmt.Sprintf("No backups found in namespace %s. What is in a bucket is there all the same: see docs/disaster.md.", op.Namespace)
	}
	return fmt.Sprintf("No backups of %s found. To make one: kubectl mfg backup create %s -n %s", op.Group, op.Group, op.Namespace)
}

// Show is `kubectl mfg backup show`.
type Show struct {
	Common
	// Group is empty if only the backup was named.
	Group string
	Name  string
	Color string
}

// Validate checks only the command line.
func (op *Show) Validate() error { return validColor(op.Color) }

// Run shows one backup.
func (op *Show) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	b, err := named(ctx, c, op.Namespace, op.Group, op.Name)
	if err != nil {
		return cli.ExitError, err
	}
	rep := op.note(b)
	code := cli.ExitHealthy
	switch {
	case rep.Phase == string(v1alpha1.BackupFailed):
		code, rep.Next = cli.ExitDegraded, wayOut(b)
	case rep.NotRestorable():
		code, rep.Next = cli.ExitDegraded, fmt.Sprintf("take another one, and keep this one to look into it: kubectl mfg backup create %s --profile %s -n %s", b.Spec.Group, b.Spec.Profile, b.Namespace)
	case rep.Completed() && rep.Verified == nil && !rep.VerificationAsked:
		rep.Next = fmt.Sprintf("prove it: kubectl mfg backup verify %s %s -n %s", b.Spec.Group, b.Name, b.Namespace)
	case rep.Completed():
		rep.Next = fmt.Sprintf("restore it into a new group: kubectl mfg restore NEWGROUP --from %s --backup %s -n %s", b.Spec.Group, b.Name, b.Namespace)
	}
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, &rep)
	}
	fmt.Fprint(env.Out, screen.Backup(rep, op.options(env, op.Color)))
	return code, nil
}
