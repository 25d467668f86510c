// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// PlaintextReport is what is unencrypted on a site, in machine form.
type PlaintextReport struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	// Site is where it was read, and where the statements must run: the active site.
	Site string `json:"site"`
	// Ready is true once the keyring of every site is sealed. Before that, a statement would stop replication to a site that has none.
	Ready bool `json:"ready"`
	// Bytes is how much must be rewritten, without the items to look at first.
	Bytes int64           `json:"bytes"`
	Items []PlaintextItem `json:"items"`
}

// PlaintextItem is one unencrypted thing.
type PlaintextItem struct {
	// Kind is Schema, Tablespace, Table or Unknown.
	Kind   string `json:"kind"`
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes,omitempty"`
	// Statement encrypts it; empty if none is known.
	Statement string `json:"statement,omitempty"`
	// LookFirst says why a person should look before running the statement; empty if it changes only encryption.
	LookFirst string `json:"lookFirst,omitempty"`
}

// Kinds of things that can be unencrypted.
const (
	plainSchema     = "Schema"
	plainTablespace = "Tablespace"
	plainTable      = "Table"
	PlainUnknown    = "Unknown"
)

// notOurs are MySQL's own schemas; the operator encrypts all of them that can be encrypted.
const notOurs = "('mysql', 'sys', 'information_schema', 'performance_schema')"

// PlainQueries read what is needed to find unencrypted data, one JSON object per line. Names are as people write them;
// only those in innodb_system are as in file names.
var PlainQueries = []string{
	"SELECT JSON_OBJECT('kind', 'schema', 'name', SCHEMA_NAME) FROM information_schema.SCHEMATA" +
		" WHERE DEFAULT_ENCRYPTION = 'NO' AND SCHEMA_NAME NOT IN " + notOurs + " ORDER BY SCHEMA_NAME",
	"SELECT JSON_OBJECT('kind', 'table', 'schema', TABLE_SCHEMA, 'name', TABLE_NAME, 'engine', ENGINE, 'bytes', IF(ENGINE = 'InnoDB', 0, DATA_LENGTH + INDEX_LENGTH))" +
		" FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE IS NOT NULL AND TABLE_SCHEMA NOT IN " + notOurs +
		" ORDER BY TABLE_SCHEMA, TABLE_NAME",
	"SELECT JSON_OBJECT('kind', LOWER(SPACE_TYPE), 'name', NAME, 'bytes', FILE_SIZE) FROM information_schema.INNODB_TABLESPACES" +
		" WHERE ENCRYPTION <> 'Y' AND SPACE_TYPE IN ('Single', 'General') AND NAME NOT IN ('mysql', 'sys/sys_config') ORDER BY NAME",
	"SELECT JSON_OBJECT('kind', 'system', 'name', NAME) FROM information_schema.INNODB_TABLES WHERE SPACE = 0 AND NAME LIKE '%/%' ORDER BY NAME",
}

// tables lists what is unencrypted on the active site.
func (op *Op) tables(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	if g.Status.ActiveSite == "" {
		return cli.ExitError, cli.Refused("refused: no site is active, so it is unknown what the group holds\n  see why: kubectl mfg explain %s -n %s", op.Group, op.Namespace)
	}
	var out bytes.Buffer
	client := env
	client.In, client.Out, client.Interactive = strings.NewReader(""), &out, func() bool { return false }
	look := mysqlclient.Op{Namespace: op.Namespace, Group: op.Group, Site: g.Status.ActiveSite, User: "root", Execute: strings.Join(PlainQueries, ";\n"),
		Args: []string{"--batch", "--raw", "--skip-column-names", "--default-character-set=utf8mb4"}}
	if code, err := look.Run(ctx, client, c); err != nil {
		return code, err
	}
	rows, err := ReadRows(out.Bytes())
	if err != nil {
		return cli.ExitError, fmt.Errorf("read what mysql says: %w", err)
	}
	rep := &PlaintextReport{
		APIVersion: report.APIVersion, Kind: "MfgPlaintextReport", Metadata: report.Metadata{Name: op.Group, Namespace: op.Namespace},
		Site: g.Status.ActiveSite, Ready: g.Status.EncryptionAtRest != nil && g.Status.EncryptionAtRest.Sealed, Items: InTheClear(rows),
	}
	for _, item := range rep.Items {
		if item.LookFirst == "" {
			rep.Bytes += item.Bytes
		}
	}
	code := cli.ExitHealthy
	if len(rep.Items) > 0 {
		code = cli.ExitDegraded
	}
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, rep)
	}
	_, err = fmt.Fprint(escape.Exact(env.Out), rep.script())
	return code, err
}

// PlainRow is one line of the answer to plainQueries.
type PlainRow struct {
	Kind, Schema, Name, Engine string
	Bytes                      int64
}

// ReadRows reads the answer to PlainQueries.
func ReadRows(raw []byte) ([]PlainRow, error) {
	var rows []PlainRow
	for line := range bytes.Lines(raw) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var row PlainRow
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// InTheClear combines what was read: schemas first, because a table rebuilt before its schema has changed needs one more
// privilege; then shared tablespaces, then tables.
func InTheClear(rows []PlainRow) []PlaintextItem {
	var schemas, spaces, unknown []PlaintextItem
	tables := newTables(rows)
	for _, row := range rows {
		switch row.Kind {
		case "schema":
			schemas = append(schemas, PlaintextItem{Kind: plainSchema, Name: row.Name, Statement: "ALTER SCHEMA " + quoted(row.Name) + " DEFAULT ENCRYPTION='Y'"})
		case "general":
			spaces = append(spaces, PlaintextItem{Kind: plainTablespace, Name: row.Name, Bytes: row.Bytes, Statement: "ALTER TABLESPACE " + quoted(row.Name) + " ENCRYPTION='Y'"})
		case "single", "system":
			if !tables.take(row) {
				unknown = append(unknown, PlaintextItem{Kind: PlainUnknown, Name: row.Name, Bytes: row.Bytes, LookFirst: "no table of that name was found"})
			}
		}
	}
	items := append([]PlaintextItem{}, schemas...)
	items = append(items, spaces...)
	items = append(items, tables.items()...)
	return append(items, unknown...)
}

// script returns what a MySQL client can run. Statements that need a look first are comments.
func (r *PlaintextReport) script() string {
	if len(r.Items) == 0 {
		return fmt.Sprintf("-- Nothing of users is in the clear on %s.\n", r.Site)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- In the clear on %s: %s. To rewrite: %s.\n", r.Site, r.counts(), sizeWords(r.Bytes))
	if r.Ready {
		fmt.Fprintf(&b, "-- It belongs on the active site: kubectl mfg adopt %s -n %s --tables | kubectl mfg mysql %s %s -n %s\n",
			r.Metadata.Name, r.Metadata.Namespace, r.Metadata.Name, r.Site, r.Metadata.Namespace)
	} else {
		b.WriteString("-- Not yet: the keyring of some site is not sealed, and there the statements would stop replication.\n")
	}
	for _, item := range r.Items {
		note := ""
		if item.Bytes > 0 {
			note = "  -- " + sizeWords(item.Bytes)
		}
		switch {
		case item.Statement == "":
			fmt.Fprintf(&b, "-- %s: %s\n", oneLine(item.Name), item.LookFirst)
		case item.LookFirst != "":
			fmt.Fprintf(&b, "-- %s: %s;\n", item.LookFirst, oneLine(item.Statement))
		case !r.Ready:
			fmt.Fprintf(&b, "-- %s;%s\n", oneLine(item.Statement), note)
		default:
			fmt.Fprintf(&b, "%s;%s\n", item.Statement, note)
		}
	}
	return b.String()
}

func (r *PlaintextReport) counts() string {
	var words []string
	for _, kind := range []struct{ kind, one, more string }{
		{plainSchema, "schema", "schemas"}, {plainTablespace, "tablespace", "tablespaces"}, {plainTable, "table", "tables"}, {PlainUnknown, "unknown file", "unknown files"},
	} {
		n := 0
		for _, item := range r.Items {
			if item.Kind == kind.kind {
				n++
			}
		}
		switch {
		case n == 1:
			words = append(words, "1 "+kind.one)
		case n > 1:
			words = append(words, fmt.Sprintf("%d %s", n, kind.more))
		}
	}
	return strings.Join(words, ", ")
}

// oneLine makes sure that a comment stays one: a name may hold a line break.
func oneLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(text)
}

func sizeWords(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n)/unit, "KMGTP"
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}
