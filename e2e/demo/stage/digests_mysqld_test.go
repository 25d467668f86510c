// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package stage

import (
	"database/sql"
	"maps"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// digestsOf does as Digests, without a cluster.
func digestsOf(t *testing.T, s *mysqltest.Server) map[string]string {
	t.Helper()
	conn, err := s.Root(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	each := func(query string, do func(fields []string)) {
		rows, err := conn.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer func() { _ = rows.Close() }()
		columns, _ := rows.Columns()
		for rows.Next() {
			fields, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range fields {
				into[i] = &fields[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, f := range fields {
				texts = append(texts, strings.ReplaceAll(f.String, "\t", `\t`)) // as the client prints it
			}
			do(texts)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.ExecContext(t.Context(), longNames); err != nil {
		t.Fatal(err)
	}
	var listing strings.Builder
	each(usersTables, func(fields []string) { listing.WriteString(strings.Join(fields, "\t") + "\n") })
	statements, err := digestStatements(listing.String())
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, statement := range statements {
		each(statement, func(fields []string) { digests[fields[0]] = fields[1] })
	}
	return digests
}

// Digests that miss a change would call a backup good that is not.
func TestDigestsSeeEveryChange(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	s.Exec(t, OddSchema("marker")...)
	before := digestsOf(t, s)
	if got := before["rows we ird`s.t-1"]; !strings.HasPrefix(got, "4 ") {
		t.Fatalf("digests %v", before)
	}
	if again := digestsOf(t, s); !maps.Equal(before, again) {
		t.Fatalf("the digests of the same are %v, and then %v", before, again)
	}
	for _, change := range []struct{ statement, name string }{
		{"UPDATE `we ird``s`.`t-1` SET d = -1.50001 WHERE d IS NOT NULL", "rows we ird`s.t-1"},
		{"UPDATE `we ird``s`.`t-1` SET e = '{\"k\": [1]}' WHERE e IS NOT NULL", "rows we ird`s.t-1"},
		{"UPDATE `we ird``s`.`t-1` SET f = f + INTERVAL 1 MICROSECOND WHERE f IS NOT NULL", "rows we ird`s.t-1"},
		{"UPDATE `we ird``s`.`t-1` SET g = b'100' WHERE g IS NOT NULL", "rows we ird`s.t-1"},
		{"UPDATE `we ird``s`.`t-1` SET `b b` = '' WHERE `b b` IS NULL LIMIT 1", "rows we ird`s.t-1"},
		{"INSERT INTO `we ird``s`.`t-1` (a) VALUES (7), (7)", "rows we ird`s.t-1"},
		{"DELETE FROM `we ird``s`.`t-1` WHERE a = 7", "rows we ird`s.t-1"},
		{"ALTER TABLE app.marked MODIFY v VARCHAR(101)", "column app.marked.v"},
		{"CREATE OR REPLACE VIEW app.shown AS SELECT v FROM app.marked", "view app.shown"},
		{"DROP EVENT app.never", "event app.never"},
		{"DROP PROCEDURE app.nothing", "routine app.nothing"},
		{"DROP TRIGGER app.upper", "trigger app.upper"},
	} {
		s.Exec(t, change.statement)
		after := digestsOf(t, s)
		if after[change.name] == before[change.name] {
			t.Errorf("%s: the digest of %s stays %q", change.statement, change.name, after[change.name])
		}
		before = after
	}
}
