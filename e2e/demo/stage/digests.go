// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Executed is all that a site has executed.
func (g *Group) Executed(ctx context.Context, site string) (gtid.Set, error) {
	out, err := g.ReadSQL(ctx, site, "SELECT REPLACE(@@GLOBAL.gtid_executed, '\n', '')")
	if err != nil {
		return gtid.Set{}, fmt.Errorf("read what %s has: %w", site, err)
	}
	set, err := gtid.Parse(strings.TrimSpace(out))
	if err != nil {
		return gtid.Set{}, fmt.Errorf("read what %s has: %w", site, err)
	}
	return set, nil
}

// AwaitCaughtUp waits until every site has executed what the active one has.
func (g *Group) AwaitCaughtUp(ctx context.Context, active string, limit time.Duration) error {
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	executed, err := g.Executed(ctx, active)
	if err != nil {
		return err
	}
	ask := fmt.Sprintf("SELECT GTID_SUBSET('%s', @@GLOBAL.gtid_executed)", executed)
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
	// A bench has gigabytes to read, and no other command takes that long.
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	out, err := g.ReadSQL(ctx, site, longNames+"; "+usersTables)
	if err != nil {
		return nil, fmt.Errorf("list tables of %s: %w", site, err)
	}
	statements, err := digestStatements(out)
	if err != nil {
		return nil, fmt.Errorf("list tables of %s: %w", site, err)
	}
	out, err = g.ReadSQL(ctx, site, longNames+"; "+strings.Join(statements, "; "))
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

// longNames are settings of the session without which lists of columns would be cut off, and times would depend on the server.
const longNames = "SET SESSION group_concat_max_len = 1 << 24, SESSION time_zone = '+00:00'"

// definitions are where the definitions of each kind are: a table with its condition, the name, and all that makes the definition.
var definitions = map[string][3]string{
	"column": {
		"information_schema.columns WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')",
		"CONCAT_WS('.', table_schema, table_name, column_name)",
		"CONCAT_WS('|', ordinal_position, column_type, is_nullable, column_default, extra, generation_expression, collation_name, column_comment)",
	},
	"index": {
		"information_schema.statistics WHERE table_schema NOT IN ('mysql', 'sys')",
		"CONCAT_WS('.', table_schema, table_name, index_name, seq_in_index)", "CONCAT_WS('|', column_name, non_unique, expression)",
	},
	"view":    {"information_schema.views WHERE table_schema <> 'sys'", "CONCAT_WS('.', table_schema, table_name)", "CONCAT_WS('|', view_definition, definer, security_type)"},
	"routine": {"information_schema.routines WHERE routine_schema <> 'sys'", "CONCAT_WS('.', routine_schema, routine_name)", "CONCAT_WS('|', routine_definition, definer, sql_mode)"},
	"trigger": {"information_schema.triggers WHERE trigger_schema <> 'sys'", "CONCAT_WS('.', trigger_schema, trigger_name)", "CONCAT_WS('|', action_statement, definer, sql_mode)"},
	"event":   {"information_schema.events", "CONCAT_WS('.', event_schema, event_name)", "CONCAT_WS('|', event_definition, definer, interval_value)"},
}

// digestStatements are the queries for all digests, by what mysql prints for usersTables: it writes a tab within a value as \t.
func digestStatements(listing string) ([]string, error) {
	var statements []string
	for line := range strings.Lines(listing) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%q is no table with its columns", line)
		}
		statements = append(statements, digestOf(fields[0], fields[1], strings.Split(fields[2], `\t`)))
	}
	if len(statements) == 0 {
		return nil, errors.New("there is no table of users")
	}
	for what, d := range definitions {
		statements = append(statements, fmt.Sprintf("SELECT CONCAT('%s ', %s), SHA2(%s, 256) FROM %s", what, d[1], d[2], d[0]))
	}
	slices.Sort(statements)
	return statements, nil
}

// OddSchema is what a database may have beside plain rows, with a text in one of the rows. Its names want quotes.
func OddSchema(marker string) []string {
	return []string{
		"CREATE DATABASE IF NOT EXISTS app", "CREATE DATABASE `we ird``s`",
		"CREATE TABLE `we ird``s`.`t-1` (a INT, `b b` BLOB, c VARCHAR(200) CHARACTER SET utf8mb4, d DECIMAL(20,5), e JSON, f TIMESTAMP(6) NULL, g BIT(9), " +
			"h INT AS (a + 1) STORED, i DATETIME DEFAULT CURRENT_TIMESTAMP, INDEX ((a * 2)))",
		"INSERT INTO `we ird``s`.`t-1` (a, `b b`, c, d, e, f, g) VALUES (1, RANDOM_BYTES(200), 'Grüße ☃', -1.50000, '{\"k\": [1, null]}', NOW(6), b'101'), (NULL, NULL, '', NULL, NULL, NULL, NULL)",
		"INSERT INTO `we ird``s`.`t-1` (a, `b b`, c) SELECT a, `b b`, c FROM `we ird``s`.`t-1`",
		"CREATE TABLE app.marked (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100))",
		"INSERT INTO app.marked (v) VALUES ('" + marker + "')",
		"CREATE VIEW app.shown AS SELECT id FROM app.marked",
		"CREATE PROCEDURE app.nothing() SELECT 1",
		"CREATE TRIGGER app.upper BEFORE INSERT ON app.marked FOR EACH ROW SET NEW.v = UPPER(NEW.v)",
		"CREATE EVENT app.never ON SCHEDULE EVERY 1 YEAR STARTS '2099-01-01 00:00:00' DO DELETE FROM app.marked",
	}
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
