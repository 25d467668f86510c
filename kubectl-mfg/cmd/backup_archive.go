// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pitr"
)

const archivePod = `A pod in the namespace reads the storage, with the Secrets of the profile, and is removed afterwards. You need the rights to create, get and
delete pods and to exec into them. The request goes to it by stdin, so none of it is in an argument or in a log.`

// bindArchive adds the flags that the verbs share which read the archive.
func bindArchive(op *pitr.Common, cmd *cobra.Command, own ...string) func() (cli.Output, error) {
	f := cmd.Flags()
	f.StringVar(&op.Image, "image", "", "Image with the program backup. Default: the image in the operator's Deployment.")
	f.DurationVar(&op.Timeout, "timeout", 30*time.Minute, "How long the whole command may take.")
	f.StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	return addOutputFlag(cmd, own...)
}

func bindIdentity(op *pitr.Common, cmd *cobra.Command) {
	cmd.Flags().StringVar(&op.Identity, "identity", "", "File with the age identity that opens the archive. Default: the Secret of the profile.")
}

// fillArchive copies what the command line says.
func (a *app) fillArchive(op *pitr.Common, out func() (cli.Output, error), group string) (err error) {
	if op.Output, err = out(); err != nil {
		return err
	}
	if op.Namespace, err = a.namespace(); err != nil {
		return err
	}
	op.Group, err = groupArgument(group)
	return err
}

func (a *app) backupTimelineCommand() *cobra.Command {
	op := pitr.Timeline{}
	cmd := &cobra.Command{
		Use:   "timeline GROUP",
		Short: "Show the period in which a group can be restored to any moment, and its gaps",
		Long: `Show the period in which a group can be restored to any moment: which site was open in which epoch, when failovers happened and what
they lost, which transactions are missing, and which backups a restore can start from. A picture first, then the same as tables.

The command reads the storage, not the cluster: this is what a restore would find. It decrypts nothing.

` + archivePod + `

Exit code 3 if nothing can be recovered, or if something is missing.`,
		Example: `  # What can be recovered?
  kubectl mfg backup timeline orders

  # The latest point, for a script
  kubectl mfg backup timeline orders -o jsonpath='{.archive.latest}'

  # The gaps
  kubectl mfg backup timeline orders -o json | jq .archive.gaps`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	out := bindArchive(&op.Common, cmd, cli.OutputWide)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fillArchive(&op.Common, out, args[0]); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) backupFindCommand() *cobra.Command {
	op := pitr.Find{}
	cmd := &cobra.Command{
		Use:   "find GROUP (--before-drop TABLE | --before TIME | --touching DB.TABLE[:KEY])",
		Short: "Find the transaction to restore to: before a DROP TABLE, before a time, or what touched a row",
		Long: `Find transactions in the archive of binary logs, to know what to restore to. The output has the GTID of each, the time of its commit to
the microsecond, epoch and site, its place in the log, and the tables that it changed. It shows no values of rows.

  --before-drop TABLE    what removed the table or all of its rows: DROP TABLE, TRUNCATE, and DROP DATABASE if DB.TABLE is given. "Prior" is
                         the last transaction before it.
  --before TIME          the last transaction committed by that time, and the first one after it.
  --touching DB.TABLE    every transaction that changed the table, its definition included.
  --touching DB.TABLE:7  every one that changed the row with that primary key; commas separate several columns. Binary logs name the primary
                         key only with binlog_row_metadata=FULL; otherwise the first columns are compared, and the output says so.
  --touching DB.TABLE:@3=VALUE
                         the same by the third column.

What a failover lost is not in the history: see "kubectl mfg backup lost". The command reads the whole archive unless --since, --until
or --epoch limit it.

` + archivePod + ``,
		Example: `  # A table was dropped: which is the last transaction before that?
  kubectl mfg backup find orders --before-drop shop.orders

  # ... and restore to it into a new group, as the output says
  kubectl mfg restore orders-restored --from orders --at before:3e11fa47-71ca-11e1-9e33-c80aa9429562:4711

  # What was the last transaction before half past two?
  kubectl mfg backup find orders --before 2026-11-25T14:30:00+01:00

  # Which transactions changed order 7 since noon?
  kubectl mfg backup find orders --touching shop.orders:7 --since 2026-11-25T12:00:00Z`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.BeforeDrop, "before-drop", "", "Table that was dropped or emptied: TABLE or DB.TABLE.")
	f.StringVar(&op.Before, "before", "", "Time, with its zone: 2026-11-25T14:03:21.123456Z.")
	f.StringVar(&op.Touching, "touching", "", "Table or row that was changed: DB.TABLE, DB.TABLE:KEY or DB.TABLE:@COLUMN=VALUE.")
	f.StringVar(&op.Since, "since", "", "Only what was committed since then.")
	f.StringVar(&op.Until, "until", "", "Only what was committed until then.")
	f.Int64Var(&op.Epoch, "epoch", 0, "Only what was committed in this epoch. Default: all.")
	f.IntVar(&op.Limit, "limit", wire.DefaultInspectTransactions, "The most transactions to show.")
	bindIdentity(&op.Common, cmd)
	out := bindArchive(&op.Common, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fillArchive(&op.Common, out, args[0]); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) backupLostCommand() *cobra.Command {
	op := pitr.Lost{}
	cmd := &cobra.Command{
		Use:   "lost GROUP",
		Short: "Show what failovers lost and the archive still has, and write its rows out",
		Long: `Show the transactions that failovers lost and the archive still has: the old site had committed and archived them, and no later site
knows them. No restore contains them. What was lost before it was archived is not here.

-o sql writes the rows as statements to stdout: read them, and load what you still want. The command does not compare them with the
present data. With binlog_row_metadata=FULL in the group's settings the log has the names of columns, and every change becomes a
statement. Without it, an INSERT names no columns, an UPDATE is a REPLACE of the whole row, and a DELETE is a comment. Definitions (DDL)
are always comments. -o json --rows has the values of each row before and after. Both show the content of rows: it may be confidential.

` + archivePod + `

Exit code 3 if something was lost.`,
		Example: `  # What was lost?
  kubectl mfg backup lost orders

  # In the failover that ended epoch 7, as SQL to read
  kubectl mfg backup lost orders --epoch 7 -o sql > lost.sql

  # As JSON, with the values
  kubectl mfg backup lost orders --epoch 7 --rows -o json`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.Int64Var(&op.Epoch, "epoch", 0, "Only what was committed in this epoch, and so lost by the failover that ended it. Default: all.")
	f.BoolVar(&op.Rows, "rows", false, "With -o json or yaml: the values of the rows too.")
	f.IntVar(&op.Limit, "limit", wire.DefaultInspectTransactions, "The most transactions to show or to write.")
	bindIdentity(&op.Common, cmd)
	out := bindArchive(&op.Common, cmd, pitr.OutputSQL)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fillArchive(&op.Common, out, args[0]); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
