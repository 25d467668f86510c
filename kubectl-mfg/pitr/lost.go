// SPDX-License-Identifier: Apache-2.0

package pitr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// OutputSQL writes rows as statements.
const OutputSQL = "sql"

// changesMax bounds the rows gathered for a report, in bytes. SQL is passed on as it comes.
const changesMax = 64 << 20

// Lost is `kubectl mfg backup lost`.
type Lost struct {
	Common
	// Epoch is the one in which it was committed; 0 for all.
	Epoch int64
	// Rows puts the rows into a report.
	Rows  bool
	Limit int
}

// Validate checks only the command line.
func (op *Lost) Validate() error {
	switch {
	case op.Epoch < 0:
		return errors.New("--epoch must be above 0")
	case op.Limit < 1 || op.Limit > wire.MaxInspectTransactions:
		return fmt.Errorf("--limit must be from 1 to %d", wire.MaxInspectTransactions)
	case op.Rows && op.Output.Printer == nil:
		return errors.New("--rows goes with -o json or -o yaml; -o sql has the rows anyway")
	}
	return op.Common.Validate()
}

// Run lists what failovers lost, or writes its rows.
func (op *Lost) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	place, profile, err := archiveOf(g, true)
	if err == nil {
		err = op.opens(g, profile)
	}
	if err != nil {
		return cli.ExitError, err
	}
	ask := wire.AskLost{Epoch: op.Epoch, Most: op.Limit}
	switch {
	case op.Output.Format == OutputSQL:
		ask.Rows = wire.RowsSQL
	case op.Rows:
		ask.Rows = wire.RowsJSON
	}
	r := &report.Found{APIVersion: report.APIVersion, Kind: report.LostKind, Metadata: report.Metadata{Name: op.Group, Namespace: op.Namespace}, Items: []wire.ArchivedTransaction{}}
	rows := &strings.Builder{}
	r.Read, err = Ask(ctx, c, place, op.Access, wire.InspectRequest{Lost: &ask}, func(l wire.InspectLine) error { return op.take(env, r, rows, l) })
	if err != nil {
		return cli.ExitError, op.spoilt(env, err)
	}
	if r.Changes, err = changes(rows.String()); err != nil {
		return cli.ExitError, err
	}
	return op.finish(env, r)
}

// take gathers one line, or passes it on.
func (op *Lost) take(env cli.Environment, r *report.Found, rows *strings.Builder, l wire.InspectLine) error {
	switch {
	case l.Transaction != nil && len(r.Items) < op.Limit:
		r.Items = append(r.Items, *l.Transaction)
	case l.Text == "":
	case op.Output.Format == OutputSQL:
		if _, err := io.WriteString(escape.Exact(env.Out), l.Text); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	case rows.Len()+len(l.Text) > changesMax:
		return cli.Refused("refused: there are more than %s of rows, which is too much for one report\n  -o sql writes them as they come; or ask for fewer: --epoch, --limit", report.Bytes(changesMax))
	default:
		rows.WriteString(l.Text)
	}
	return nil
}

// spoilt says in the SQL itself that it is incomplete: it may already be in a file.
func (op *Lost) spoilt(env cli.Environment, err error) error {
	if op.Output.Format == OutputSQL {
		fmt.Fprintln(env.Out, "\nROLLBACK;\n-- NOT COMPLETE: the reading ended with an error. Do not use this.")
	}
	return err
}

func changes(text string) ([]wire.ArchivedChange, error) {
	var all []wire.ArchivedChange
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			continue
		}
		var c wire.ArchivedChange
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, errors.New("what came is no change of a row: is the image of the version of this plugin?")
		}
		all = append(all, c)
	}
	return all, nil
}

func (op *Lost) finish(env cli.Environment, r *report.Found) (int, error) {
	code := cli.ExitHealthy
	if len(r.Items) > 0 {
		code = cli.ExitDegraded
		r.Next = fmt.Sprintf("write the rows out, read them, and load what is still wanted: kubectl mfg backup lost %s -o sql -n %s", op.Group, op.Namespace)
	}
	switch {
	case op.Output.Printer != nil:
		return code, printed(op.Output, env, r)
	case op.Output.Format == OutputSQL:
		fmt.Fprintf(env.ErrOut, "%d transactions\n", len(r.Items))
	case len(r.Items) == 0:
		fmt.Fprintln(env.ErrOut, "Nothing that is in the archive was lost.")
	default:
		fmt.Fprint(env.Out, screen.FoundTable(r.Items, op.options(env)))
		fmt.Fprintf(env.ErrOut, "\nTo write the rows out, as statements to read before they are used:\n  kubectl mfg backup lost %s -o sql -n %s\n", op.Group, op.Namespace)
	}
	if r.Read.Truncated {
		fmt.Fprintf(env.ErrOut, "There is more than %d transactions: raise --limit, or choose an --epoch.\n", op.Limit)
	}
	return code, nil
}
