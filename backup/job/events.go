// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

// A site that only replicates has every event as REPLICA_SIDE_DISABLED, whatever it is on the active site (seen on 9.7.4), and that is what a
// dump or a clone of it holds: a group that is made of it would run none. So the active site is asked, and the load puts the events back.

// Event is one event of the scheduler as it is on the active site.
type Event struct {
	Schema  string `json:"schema"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled,omitempty"`
}

const (
	// activeTimeout bounds what the active site is asked: a backup does not wait for it.
	activeTimeout = 10 * time.Second
	// eventsMax is far above what anybody has.
	eventsMax = 100000
	// heldBack is true of events that run nowhere on this server because it replicated them. The second name is that of older series.
	heldBack = "status IN ('REPLICA_SIDE_DISABLED', 'REPLICA SIDE DISABLED', 'SLAVESIDE_DISABLED')"
)

// readEvents notes how the events that the site holds back are on the active site. That it cannot be asked is a warning: the rows are worth
// more than that.
func (m *making) readEvents(ctx context.Context) error {
	var n int
	if err := m.src.held.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.events WHERE "+heldBack).Scan(&n); err != nil {
		return m.src.explain(fmt.Errorf("count events: %w", err))
	}
	if n == 0 {
		return nil
	}
	events, err := m.config.Source.activeEvents(ctx)
	if err != nil {
		m.warnings = append(m.warnings, fmt.Sprintf("%d events come back disabled, because the active site could not be asked: %v", n, err))
		return nil
	}
	m.facts.Events = events
	return nil
}

// activeEvents are the events of the active site.
func (s Source) activeEvents(ctx context.Context) (events []Event, err error) {
	if s.ActiveHost == "" {
		return nil, errors.New("it is not known")
	}
	ctx, cancel := context.WithTimeout(ctx, activeTimeout)
	defer cancel()
	active := s
	active.Host = s.ActiveHost
	if s.ActivePort > 0 {
		active.Port = s.ActivePort
	}
	target, err := active.target()
	if err != nil {
		return nil, err
	}
	pool, err := mysql.Pool(target)
	if err != nil {
		return nil, err
	}
	defer func() { _ = pool.Close() }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT event_schema, event_name, status = 'ENABLED' FROM information_schema.events "+
		"WHERE NOT (%s) ORDER BY event_schema, event_name LIMIT %d", heldBack, eventsMax))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e Event
		if err := rows.Scan(&e.Schema, &e.Name, &e.Enabled); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, rows.Err()
}

// storedEvent is an event in the server here, with what an ALTER would change of it without being asked to.
type storedEvent struct{ schema, name, definer, mode, zone, charset, collation string }

// restoreEvents gives the events of the loaded server the status that they had on the active site. One of which that is not known stays
// disabled, and is told: an event that somebody had switched off must not run.
func (l *loading) restoreEvents(ctx context.Context, conn *sql.Conn) error {
	stored, err := heldBackEvents(ctx, conn)
	if err != nil {
		return fail(LoadFailed, fmt.Errorf("list events: %w", err))
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
		if err := run(ctx, conn, e.statements(enabled)...); err != nil {
			if number(err) == 0 {
				return fail(LoadFailed, fmt.Errorf("set the status of an event: %w", err))
			}
			left++
		}
	}
	if left > 0 {
		l.warnings = append(l.warnings, fmt.Sprintf("%d events stay disabled: look at information_schema.EVENTS, and ALTER EVENT ... ENABLE those that must run", left))
	}
	return fail(LoadFailed, run(ctx, conn, "SET NAMES utf8mb4", "SET SESSION sql_mode = '', SESSION time_zone = '+00:00'"))
}

func heldBackEvents(ctx context.Context, conn *sql.Conn) (out []storedEvent, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT event_schema, event_name, definer, sql_mode, time_zone, character_set_client, collation_connection "+
		"FROM information_schema.events WHERE "+heldBack+" ORDER BY event_schema, event_name")
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
		fmt.Sprintf("ALTER DEFINER = %s@%s EVENT %s.%s %s", quoteName(user), quoteName(host), quoteName(e.schema), quoteName(e.name), status),
		"SET SESSION sql_mode = ''",
	}
}

// text quotes a text under a mode in which a backslash is an escape.
func text(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(value) + "'"
}
