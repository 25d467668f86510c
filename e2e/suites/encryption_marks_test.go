// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// marks are needles that a group was given, each of which means one kind of thing.
type marks struct{ row, schema, table, column, index string }

func (m marks) needles() map[string]string {
	return map[string]string{
		m.row: "rows", m.schema: "the name of a schema", m.table: "the name of a table", m.column: "the name of a column", m.index: "the name of an index",
	}
}

// rows is a query that makes 900 of them, with numbers.
func (m marks) rows() string {
	return "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, CONCAT('" + m.row + "', i, REPEAT('x', 200)) FROM n"
}

// mark gives a group a schema with a table and an index, rows, and older versions of rows.
func mark(t *testing.T, g *stage.Group, active string) marks {
	t.Helper()
	text := func() string { return "qx" + strings.ToLower(rand.Text())[:14] }
	m := marks{text(), text(), text(), text(), text()}
	query(t, g, active, strings.Join([]string{
		"CREATE DATABASE " + m.schema, "USE " + m.schema,
		fmt.Sprintf("CREATE TABLE %s (id INT PRIMARY KEY, %s VARCHAR(400), KEY %s (%[2]s))", m.table, m.column, m.index),
		fmt.Sprintf("INSERT INTO %s %s", m.table, m.rows()),
		fmt.Sprintf("UPDATE %[1]s SET %[2]s = CONCAT('old', %[2]s) WHERE id %% 2", m.table, m.column),
		fmt.Sprintf("DELETE FROM %s WHERE id %% 7 = 0", m.table),
	}, "; "))
	return m
}

// markAll marks a group while one replica receives and does not apply, so that all of it is in that one's relay log and nowhere else
// on its volume; relayed looks at that. Then every site applies, and writes all pages.
func markAll(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup, relayed func(site string, m marks)) marks {
	t.Helper()
	active, replica := group.Status.ActiveSite, replicas(group)[0]
	// The first thing to apply is a new schema, which waits for the end of a backup. Nobody takes that for a fault.
	release := hold(t, g, replica, "LOCK INSTANCE FOR BACKUP", "SELECT SLEEP(%d), '%s'")
	m := mark(t, g, active)
	set := gtids(t, g, active)
	if err := stage.Poll(t.Context(), time.Minute, "the marks in the relay log of "+replica, func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, replica, fmt.Sprintf("SELECT GTID_SUBTRACT(GTID_SUBTRACT('%s', @@GLOBAL.gtid_executed), "+
			"(SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status))", set))
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("%s was not received", strings.TrimSpace(out))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	relayed(replica, m)
	if n := query(t, g, replica, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '"+m.schema+"'"); n != "0" {
		t.Errorf("%s applied the marks while its relay log was searched: that it was there proves nothing", replica)
	}
	release()
	flushAll(t, g, m)
	return m
}

func gtids(t *testing.T, g *stage.Group, site string) string {
	t.Helper()
	return strings.ReplaceAll(query(t, g, site, "SELECT @@GLOBAL.gtid_executed"), "\\n", "")
}

// holdFor is far longer than any search.
const holdFor = 3600

// hold keeps a session open that has run some statements and now runs a last one, which sleeps for so many seconds and has a text
// by which it is known, until the function that it returns is called.
func hold(t *testing.T, g *stage.Group, site, statements, last string) (release func()) {
	t.Helper()
	tag := "held" + rand.Text()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), (holdFor+60)*time.Second)
	ended := make(chan error, 1)
	go func() {
		_, err := g.RootSQL(ctx, site, statements+"; "+fmt.Sprintf(last, holdFor, tag))
		ended <- err
	}()
	session := "FROM performance_schema.processlist WHERE ID <> CONNECTION_ID() AND INFO LIKE '%" + tag + "%'"
	var once sync.Once
	release = func() {
		once.Do(func() {
			defer cancel()
			id, err := g.RootSQL(ctx, site, "SELECT ID "+session)
			if err == nil && strings.TrimSpace(id) != "" {
				_, err = g.RootSQL(ctx, site, "KILL "+strings.TrimSpace(id))
			}
			if err != nil {
				t.Errorf("end the session that is held open on %s: %v", site, err)
			}
		})
	}
	t.Cleanup(release)
	if err := stage.Poll(t.Context(), time.Minute, "a session to be held open on "+site, func(ctx context.Context) error {
		select {
		case err := <-ended:
			t.Fatalf("the session that is to be held open on %s ended: %v", site, err)
		default:
		}
		out, err := g.RootSQL(ctx, site, "SELECT STATE "+session)
		if err == nil && strings.TrimSpace(out) != "User sleep" {
			err = fmt.Errorf("it is in the state %q", strings.TrimSpace(out))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return release
}

func flushAll(t *testing.T, g *stage.Group, m marks) {
	t.Helper()
	for _, site := range sitesOf(t, g) {
		flush(t, g, site, m)
	}
}

// flush waits until a site has the marked rows, and then until it has written all pages.
func flush(t *testing.T, g *stage.Group, site string, m marks) {
	t.Helper()
	if err := stage.Poll(t.Context(), time.Minute, "the marks on "+site, func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, site, fmt.Sprintf("SELECT COUNT(*) > 500 FROM %s.%s", m.schema, m.table))
		if err != nil || strings.TrimSpace(out) != "1" {
			return errors.Join(err, errors.New("its rows are not there yet"))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	const status = "(SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Innodb_redo_log_%s_lsn')"
	lsn := query(t, g, site, "FLUSH LOCAL LOGS; SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, GLOBAL innodb_max_dirty_pages_pct = 0; SELECT "+fmt.Sprintf(status, "current"))
	// What was changed before the checkpoint is in the files.
	if err := stage.Poll(t.Context(), time.Minute, "the pages of "+site+" to be written", func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, site, fmt.Sprintf("SELECT %s >= %s", fmt.Sprintf(status, "checkpoint"), lsn))
		if err == nil && strings.TrimSpace(out) != "1" {
			err = errors.New("its checkpoint is behind")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func sitesOf(t *testing.T, g *stage.Group) []string {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, site := range group.Spec.Sites {
		names = append(names, site.Name)
	}
	return names
}
