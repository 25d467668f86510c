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

const archivePod = `A pod in the namespace reads the storage, with the Secrets of the profile, and is removed after that: you need the rights to create, get and
delete pods and to exec into them. What is asked goes to it by stdin: nothing of it is in an argument or in a log.`

// bindArchive adds the flags that the verbs have in common which read the archive.
func bindArchive(op *pitr.Common, cmd *cobra.Command, own ...string) func() (cli.Output, error) {
	f := cmd.Flags()
	f.StringVar(&op.Image, "image", "", "Image with the program backup. Default: the one of the operator, by its Deployment.")
	f.DurationVar(&op.Timeout, "timeout", 30*time.Minute, "How long all of it may take.")
	f.StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	return addOutputFlag(cmd, own...)
}

func bindIdentity(op *pitr.Common, cmd *cobra.Command) {
	cmd.Flags().StringVar(&op.Identity, "identity", "", "File with the age identity that opens the archive. Default: the Secret of the profile.")
}

// fillArchive takes over what the command line says.
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
		Short: "Show from when to when a group can be brought back, and what is in the way",
		Long: `Show from when to when a group can be brought back to any moment: which site was open in which epoch, where failovers were and what they
lost, which transactions are missing, and which backups lead on from where they end. A picture first, then the same as tables.

The storage is asked, and not the cluster: this is what a restore would find. Nothing is decrypted for it.

` + archivePod + `

Exit code 3 if nothing can be recovered, or if something is missing.

` + cli.ExitCodes,
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
		Long: `Find transactions in the archive of binary logs, to know where to restore to. Each is told with its GTID, when it was committed to the
microsecond, in which epoch on which site, where it is in the log, and which tables it changed. No values of rows are shown.

  --before-drop TABLE    what removed the table or all of its rows: DROP TABLE, TRUNCATE, and DROP DATABASE if DB.TABLE is given. "Prior" is
                         the last transaction before it.
  --before TIME          the last transaction that was committed until then, and the first one after it.
  --touching DB.TABLE    every transaction that changed the table, its definition included.
  --touching DB.TABLE:7  every one that changed the row with that primary key; several columns are separated by commas. Binary logs say what
                         the primary key is with binlog_row_metadata=FULL alone; otherwise the first columns are compared, which is said.
  --touching DB.TABLE:@3=VALUE
                         the same by the third column.

What was lost by a failover is not in the history: "kubectl mfg backup lost" has it. The whole archive is read unless --since, --until or --epoch
bound it.

` + archivePod + `

` + cli.ExitCodes,
		Example: `  # Somebody dropped a table: what is the last transaction before that?
  kubectl mfg backup find orders --before-drop shop.orders

  # ... and into a new group with it, as the output says
  kubectl mfg restore orders-restored --from orders --at before:3e11fa47-71ca-11e1-9e33-c80aa9429562:4711

  # What was last before half past two?
  kubectl mfg backup find orders --before 2026-11-25T14:30:00+01:00

  # Who changed order 7 since noon?
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
	f.IntVar(&op.Limit, "limit", wire.DefaultInspectTransactions, "How many transactions are told.")
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
knows them. They are part of no restore. What was lost before it was archived is not here.

-o sql writes the rows as statements to stdout: read them, and load what is still wanted. Nothing was compared with the data that is there
now. With binlog_row_metadata=FULL in the group's settings the log has the names of columns, and every change becomes a statement; without,
INSERT goes by position, an UPDATE is a REPLACE of the whole row, and a DELETE is a comment. Definitions (DDL) are comments in any case.
-o json --rows has the values of each row before and after. Both show what is in the rows: it may be confidential.

` + archivePod + `

Exit code 3 if something was lost.

` + cli.ExitCodes,
		Example: `  # What was lost?
  kubectl mfg backup lost orders

  # By the failover that ended epoch 7, as SQL to look at
  kubectl mfg backup lost orders --epoch 7 -o sql > lost.sql

  # As JSON, with the values
  kubectl mfg backup lost orders --epoch 7 --rows -o json`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.Int64Var(&op.Epoch, "epoch", 0, "Only what was committed in this epoch, and so lost by the failover that ended it. Default: all.")
	f.BoolVar(&op.Rows, "rows", false, "With -o json or yaml: the values of the rows too.")
	f.IntVar(&op.Limit, "limit", wire.DefaultInspectTransactions, "How many transactions are told or written out.")
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
