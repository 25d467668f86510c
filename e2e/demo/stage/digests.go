// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AwaitCaughtUp waits until every site has executed what the active one has.
func (g *Group) AwaitCaughtUp(ctx context.Context, active string, limit time.Duration) error {
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	executed, err := g.RootSQL(ctx, active, "SELECT REPLACE(@@GLOBAL.gtid_executed, '\n', '')")
	if err != nil {
		return fmt.Errorf("read what %s has: %w", active, err)
	}
	ask := fmt.Sprintf("SELECT GTID_SUBSET('%s', @@GLOBAL.gtid_executed)", strings.TrimSpace(executed))
	for _, site := range group.Spec.Sites {
		err := Poll(ctx, limit, site.Name+" to catch up", func(ctx context.Context) error {
			out, err := g.RootSQL(ctx, site.Name, ask)
			if err != nil {
				return err
			}
			if strings.TrimSpace(out) != "1" {
				return errors.New("it is behind")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// usersTables are all tables of users with their columns, in order. Names of columns are quoted.
const usersTables = "SELECT t.table_schema, t.table_name, GROUP_CONCAT(CONCAT('`', REPLACE(c.column_name, '`', '``'), '`') ORDER BY c.ordinal_position SEPARATOR '\t') " +
	"FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name) " +
	"WHERE t.table_type = 'BASE TABLE' AND t.table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') " +
	"GROUP BY t.table_schema, t.table_name ORDER BY t.table_schema, t.table_name"

// Digests are the number of rows and a digest of every row of each table of users on a site, and the definitions of all tables, views,
// routines, triggers and events, by their names. Whether an event is enabled is left out: MySQL disables it on a replica.
func (g *Group) Digests(ctx context.Context, site string) (map[string]string, error) {
	const longNames = "SET SESSION group_concat_max_len = 1 << 24, SESSION time_zone = '+00:00'; "
	out, err := g.RootSQL(ctx, site, longNames+usersTables)
	if err != nil {
		return nil, fmt.Errorf("list tables of %s: %w", site, err)
	}
	var selects []string
	for line := range strings.Lines(out) {
		// The client writes a tab within a value as \t.
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("list tables of %s: %q", site, line)
		}
		selects = append(selects, digestOf(fields[0], fields[1], strings.Split(fields[2], `\t`)))
	}
	if len(selects) == 0 {
		return nil, fmt.Errorf("%s has no table of users", site)
	}
	for what, from := range map[string]string{
		"column":  "information_schema.columns WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')|CONCAT_WS('.', table_schema, table_name, column_name)|CONCAT_WS('|', ordinal_position, column_type, is_nullable, column_default, extra, generation_expression, collation_name, column_comment)",
		"index":   "information_schema.statistics WHERE table_schema NOT IN ('mysql', 'sys')|CONCAT_WS('.', table_schema, table_name, index_name, seq_in_index)|CONCAT_WS('|', column_name, non_unique, expression)",
		"view":    "information_schema.views WHERE table_schema <> 'sys'|CONCAT_WS('.', table_schema, table_name)|CONCAT_WS('|', view_definition, definer, security_type)",
		"routine": "information_schema.routines WHERE routine_schema <> 'sys'|CONCAT_WS('.', routine_schema, routine_name)|CONCAT_WS('|', routine_definition, definer, sql_mode)",
		"trigger": "information_schema.triggers WHERE trigger_schema <> 'sys'|CONCAT_WS('.', trigger_schema, trigger_name)|CONCAT_WS('|', action_statement, definer, sql_mode)",
		"event":   "information_schema.events|CONCAT_WS('.', event_schema, event_name)|CONCAT_WS('|', event_definition, definer, interval_value)",
	} {
		// No definition holds the separator before the second one.
		p := strings.SplitN(from, "|", 3)
		selects = append(selects, fmt.Sprintf("SELECT CONCAT('%s ', %s), SHA2(%s, 256) FROM %s", what, p[1], p[2], p[0]))
	}
	slices.Sort(selects)
	out, err = g.RootSQL(ctx, site, longNames+strings.Join(selects, "; "))
	if err != nil {
		return nil, fmt.Errorf("read digests of %s: %w", site, err)
	}
	digests := map[string]string{}
	for line := range strings.Lines(out) {
		name, digest, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		digests[name] = digest
	}
	return digests, nil
}

// digestOf is a query for the digest of a table that does not depend on the order of its rows. Rows that are alike do not take each
// other away, as they would with an exclusive or.
func digestOf(schema, table string, columns []string) string {
	var values []string
	for _, c := range columns {
		values = append(values, "IFNULL(HEX(CAST("+c+" AS BINARY)), 'NULL')")
	}
	quoted := func(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
	text := strings.NewReplacer(`\`, `\\`, "'", "''").Replace(schema + "." + table)
	return fmt.Sprintf("SELECT 'rows %s', CONCAT(COUNT(*), ' ', IFNULL(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('|', %s), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM %s.%s",
		text, strings.Join(values, ", "), quoted(schema), quoted(table))
}
