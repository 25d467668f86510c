// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// storedEvent is an event in the server here, with what an ALTER would change of it without being asked to.
type storedEvent struct{ schema, name, definer, mode, zone, charset, collation string }

// restoreEvents gives the events of the loaded server the status that they had on the active site. If that is not
// known of one, it stays disabled, and a warning will say so: an event that was switched off there must not run.
func (l *loading) restoreEvents(ctx context.Context, conn *sql.Conn) error {
	stored, err := heldBackEvents(ctx, conn)
	if err != nil {
		return terms.Fail(terms.LoadFailed, fmt.Errorf("list events: %w", err))
	}
	was := map[[2]string]bool{}
	for _, e := range l.facts.Events {
		was[[2]string{e.Schema, e.Name}] = e.Enabled
	}
	left := 0
	for _, e := range stored {
		enabled, known := was[[2]string{e.schema, e.name}]
		if !known || !e.writable() {
			left++
			continue
		}
		if err := mysqld.Run(ctx, conn, e.statements(enabled)...); err != nil {
			if mysqld.Number(err) == 0 {
				return terms.Fail(terms.LoadFailed, fmt.Errorf("set the status of an event: %w", err))
			}
			left++
		}
	}
	l.eventsLeft = left
	return terms.Fail(terms.LoadFailed, mysqld.Run(ctx, conn, "SET NAMES utf8mb4", "SET SESSION sql_mode = '', SESSION time_zone = '+00:00'"))
}

// countEvents notes how many events are held back after a replay. MySQL switches off every event that it creates or alters by replication, whatever
// the event was on the active site.
func (l *loading) countEvents(ctx context.Context, conn *sql.Conn) error {
	stored, err := heldBackEvents(ctx, conn)
	if err != nil {
		return terms.Fail(terms.LoadFailed, fmt.Errorf("list events: %w", err))
	}
	l.eventsLeft = len(stored)
	return nil
}

// warnOfEvents tells of the events that do not run.
func (l *loading) warnOfEvents() {
	if l.eventsLeft > 0 {
		l.warnings = append(l.warnings, fmt.Sprintf("%d events stay disabled: look at information_schema.EVENTS, and ALTER EVENT ... ENABLE those that must run", l.eventsLeft))
	}
}

func heldBackEvents(ctx context.Context, conn *sql.Conn) (out []storedEvent, err error) {
	const heldBack = "SELECT event_schema, event_name, definer, sql_mode, time_zone, character_set_client, collation_connection " +
		"FROM information_schema.events WHERE " + mysqld.HeldBack + " ORDER BY event_schema, event_name"
	rows, err := conn.QueryContext(ctx, heldBack)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e storedEvent
		if err := rows.Scan(&e.schema, &e.name, &e.definer, &e.mode, &e.zone, &e.charset, &e.collation); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// writable is true if the names can be written in the character set that the event was made with, which an ALTER has to use.
func (e storedEvent) writable() bool {
	if strings.HasPrefix(e.charset, "utf8") {
		return true
	}
	return !strings.ContainsFunc(e.schema+e.name+e.definer, func(r rune) bool { return r > unicode.MaxASCII })
}

// statements set the status and leave everything else: ALTER EVENT takes definer, mode, time zone and character set from the session.
func (e storedEvent) statements(enabled bool) []string {
	status := "DISABLE"
	if enabled {
		status = "ENABLE"
	}
	at := strings.LastIndexByte(e.definer, '@')
	user, host := e.definer[:max(at, 0)], e.definer[at+1:]
	return []string{
		fmt.Sprintf("SET SESSION character_set_client = %s, SESSION collation_connection = %s, SESSION time_zone = %s", text(e.charset), text(e.collation), text(e.zone)),
		// With the mode of the event a backslash may be no escape: names have none that matter, and are quoted for either.
		"SET SESSION sql_mode = " + text(e.mode),
		fmt.Sprintf("ALTER DEFINER = %s@%s EVENT %s.%s %s", mysqld.QuoteName(user), mysqld.QuoteName(host), mysqld.QuoteName(e.schema), mysqld.QuoteName(e.name), status),
		"SET SESSION sql_mode = ''",
	}
}

// text quotes a text under a mode in which a backslash is an escape.
func text(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(value) + "'"
}
