// SPDX-License-Identifier: Apache-2.0

package pitr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Find is `kubectl mfg backup find`.
type Find struct {
	Common
	// BeforeDrop, Before and Touching say what to search for: exactly one.
	BeforeDrop, Before, Touching string
	// Since and Until bound the search in time, Epoch in epochs; empty and 0 do not.
	Since, Until string
	Epoch        int64
	Limit        int

	ask wire.AskFind
}

// Validate checks only the command line.
func (op *Find) Validate() error {
	given := 0
	for _, s := range []string{op.BeforeDrop, op.Before, op.Touching} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return errors.New("choose exactly one of --before-drop TABLE, --before TIME and --touching DB.TABLE[:KEY]")
	}
	if op.Limit < 1 || op.Limit > wire.MaxInspectTransactions {
		return fmt.Errorf("--limit must be from 1 to %d", wire.MaxInspectTransactions)
	}
	if op.Epoch < 0 {
		return errors.New("--epoch must be above 0")
	}
	ask := wire.AskFind{Epoch: op.Epoch, Most: op.Limit}
	for _, t := range []struct {
		flag, text string
		into       *time.Time
	}{{"--before", op.Before, &ask.Before}, {"--since", op.Since, &ask.Since}, {"--until", op.Until, &ask.Until}} {
		if t.text == "" {
			continue
		}
		at, err := ParseTime(t.text)
		if err != nil {
			return fmt.Errorf("%s: %w", t.flag, err)
		}
		*t.into = at
	}
	switch {
	case op.BeforeDrop != "":
		t := tableOf(op.BeforeDrop)
		if t.Table == "" {
			return fmt.Errorf("--before-drop %q names no table: TABLE or DB.TABLE", op.BeforeDrop)
		}
		ask.Drop = &t
	case op.Touching != "":
		row, err := rowOf(op.Touching)
		if err != nil {
			return err
		}
		ask.Touching = row
	}
	op.ask = ask
	return op.Common.Validate()
}

// ParseTime reads a time as people write it: RFC 3339, or a date and a time in UTC.
func ParseTime(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC().Truncate(time.Microsecond), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write it with its zone, as in 2026-11-25T14:03:21.123456Z or 2026-11-25T15:03:21+01:00", text)
}

func tableOf(text string) wire.AskTable {
	schema, table, both := strings.Cut(text, ".")
	if !both {
		return wire.AskTable{Table: text}
	}
	return wire.AskTable{Schema: schema, Table: table}
}

// rowOf reads DB.TABLE, DB.TABLE:KEY or DB.TABLE:@COLUMN=VALUE. The values of a key of several columns are separated by commas.
func rowOf(text string) (*wire.AskRow, error) {
	name, key, one := strings.Cut(text, ":")
	row := &wire.AskRow{AskTable: tableOf(name)}
	if row.Table == "" {
		return nil, fmt.Errorf("--touching %q names no table: DB.TABLE, DB.TABLE:KEY or DB.TABLE:@COLUMN=VALUE", text)
	}
	if !one {
		return row, nil
	}
	if rest, is := strings.CutPrefix(key, "@"); is {
		number, value, both := strings.Cut(rest, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || !both {
			return nil, fmt.Errorf("--touching %q: after @ comes the place of a column, from 1, and its value: @3=42", text)
		}
		row.Column, row.Key = n, []string{value}
		return row, nil
	}
	row.Key = strings.Split(key, ",")
	return row, nil
}

// Run finds transactions.
func (op *Find) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
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
	r := &report.Found{APIVersion: report.APIVersion, Kind: report.FoundKind, Metadata: report.Metadata{Name: op.Group, Namespace: op.Namespace}, Items: []wire.ArchivedTransaction{}}
	r.Read, err = Ask(ctx, c, place, op.Access, wire.InspectRequest{Find: &op.ask}, func(l wire.InspectLine) error {
		if l.Transaction != nil && len(r.Items) < op.Limit {
			r.Items = append(r.Items, *l.Transaction)
		}
		return nil
	})
	if err != nil {
		return cli.ExitError, err
	}
	r.Next = op.next(r.Items)
	if op.Output.Printer != nil {
		return cli.ExitHealthy, printed(op.Output, env, r)
	}
	op.draw(env, r)
	return cli.ExitHealthy, nil
}

func (op *Find) draw(env cli.Environment, r *report.Found) {
	if len(r.Items) == 0 {
		fmt.Fprintf(env.ErrOut, "Nothing was found in %d transactions of %s.%s\n", r.Read.Transactions, report.Bytes(r.Read.Bytes), op.hint())
		return
	}
	if len(r.Items) > 4 {
		fmt.Fprint(env.Out, screen.FoundTable(r.Items, op.options(env)))
	} else {
		fmt.Fprint(env.Out, screen.Found(r.Items, op.options(env)))
	}
	if r.Read.KeyBy != "" {
		fmt.Fprintf(env.ErrOut, "\nRows were compared by %s.\n  to name a column: --touching DB.TABLE:@3=VALUE\n", r.Read.KeyBy)
	}
	if r.Read.Truncated {
		fmt.Fprintf(env.ErrOut, "\nThere are more than %d: narrow it down with --since, --until or --epoch, or raise --limit.\n", op.Limit)
	}
	if r.Next != "" {
		fmt.Fprintf(env.ErrOut, "\n%s\n", r.Next)
	}
}

// hint says where else it may be.
func (op *Find) hint() string {
	if op.ask.Drop != nil && op.ask.Drop.Schema == "" {
		return "\n  if the whole database was dropped, name it: --before-drop DB." + op.ask.Drop.Table
	}
	return "\n  see from when to when the archive reaches: kubectl mfg backup timeline " + op.Group + " -n " + op.Namespace
}

// next says how to restore to a match. People mean the last match: what was dropped earlier was made again.
func (op *Find) next(items []wire.ArchivedTransaction) string {
	if len(items) == 0 {
		return ""
	}
	command := func(at string) string {
		return fmt.Sprintf("kubectl mfg restore %s-restored --from %s --at %s -n %s", op.Group, op.Group, at, op.Namespace)
	}
	last := items[len(items)-1]
	switch {
	case op.ask.Drop != nil:
		return "To bring back the state before the last of these into a new group:\n  " + command("before:"+last.GTID)
	case !op.ask.Before.IsZero() && items[0].Role == wire.RoleBefore:
		return "To bring back that state into a new group:\n  " + command("gtid:"+items[0].GTID)
	case op.ask.Touching != nil:
		return "To bring back the state before one of these into a new group, here the last:\n  " + command("before:"+last.GTID)
	}
	return ""
}

// printed writes a report in a machine's form.
func printed(out cli.Output, env cli.Environment, r any) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil { // it keeps integers
		return fmt.Errorf("encode report: %w", err)
	}
	return out.Print(env.Out, &content)
}
