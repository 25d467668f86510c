// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// A site that only replicates has every event as REPLICA_SIDE_DISABLED, whatever it is on the active site (seen on 9.7.4), and that is what a
// dump or a clone of it holds: a group that is made of it would run none. So the active site is asked, and the load puts the events back.

const (
	// activeTimeout bounds what the active site is asked: a backup does not wait for it.
	activeTimeout = 10 * time.Second
	// eventsMax is far above what anybody has.
	eventsMax = 100000
)

// readEvents notes how the events that the site holds back are on the active site. That it cannot be asked is a warning: the rows are worth
// more than that.
func (m *making) readEvents(ctx context.Context) error {
	var n int
	if err := m.src.held.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.events WHERE "+mysqld.HeldBack).Scan(&n); err != nil {
		return m.src.explain(fmt.Errorf("count events: %w", err))
	}
	if n == 0 {
		return nil
	}
	events, err := activeEvents(ctx, m.Config.Source)
	if err != nil {
		m.warnings = append(m.warnings, fmt.Sprintf("%d events come back disabled, because the active site could not be asked: %v", n, err))
		return nil
	}
	m.facts.Events = events
	return nil
}

// activeEvents are the events of the active site.
func activeEvents(ctx context.Context, s terms.Source) (events []terms.Event, err error) {
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
	to, err := target(active)
	if err != nil {
		return nil, err
	}
	pool, err := mysql.Pool(to)
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
		"WHERE NOT (%s) ORDER BY event_schema, event_name LIMIT %d", mysqld.HeldBack, eventsMax))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e terms.Event
		if err := rows.Scan(&e.Schema, &e.Name, &e.Enabled); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, rows.Err()
}
