// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// MySQL starts the event scheduler again the moment super_read_only goes off, and neither offline_mode nor read_only stops an
// event of an administrator (seen on 9.7.4). A site that was active, or was cloned from one, has enabled events: in a window
// they would commit transactions that no other site has.
const (
	eventsOff = "SET GLOBAL event_scheduler = OFF"
	eventsOn  = "SET GLOBAL event_scheduler = ON"
	// eventWorkers are running events: they continue when the scheduler ends.
	eventWorkers = "SELECT PROCESSLIST_ID FROM performance_schema.threads WHERE NAME = 'thread/sql/event_worker' AND PROCESSLIST_ID IS NOT NULL"
	// eventsOffByUs is true if the operator was the last to switch the scheduler off. Users switch it off too, and then it
	// stays off. The server remembers this as long as the setting lasts, so a crash of ours does not lose it.
	eventsOffByUs = "SELECT EXISTS (SELECT * FROM performance_schema.variables_info" +
		" WHERE VARIABLE_NAME = 'event_scheduler' AND VARIABLE_SOURCE = 'DYNAMIC' AND SET_USER = '" + AccountOperator + "')"
)

// eventPoll is how often stopEvents looks whether killed events have ended.
const eventPoll = 50 * time.Millisecond

// stopEvents switches the event scheduler off and ends the running events. Only resumeEvents switches it on again.
func stopEvents(ctx context.Context, conn *sql.Conn) error {
	state, err := eventScheduler(ctx, conn)
	if err != nil {
		return err
	}
	if state == "ON" {
		if err := execAll(ctx, conn, eventsOff); err != nil {
			return err
		}
	}
	ticker := time.NewTicker(eventPoll)
	defer ticker.Stop()
	for {
		ids, err := queryNumbers(ctx, conn, eventWorkers)
		if err != nil {
			return fmt.Errorf("list events that run: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		for _, id := range ids {
			if err := execAll(ctx, conn, fmt.Sprintf("KILL %d", id)); err != nil && number(err) != numberNoSuchThread {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("events that run do not end"), ctx.Err())
		case <-ticker.C:
		}
	}
}

// resumeEvents switches the event scheduler on again if stopEvents has switched it off.
func resumeEvents(ctx context.Context, conn *sql.Conn) error {
	state, err := eventScheduler(ctx, conn)
	if err != nil || state != "OFF" {
		return err
	}
	var ours bool
	if err := conn.QueryRowContext(ctx, eventsOffByUs).Scan(&ours); err != nil {
		return fmt.Errorf("ask who switched the event scheduler off: %w", err)
	}
	if !ours {
		return nil
	}
	return execAll(ctx, conn, eventsOn)
}

func eventScheduler(ctx context.Context, conn *sql.Conn) (string, error) {
	var state string
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.event_scheduler").Scan(&state); err != nil {
		return "", fmt.Errorf("read event_scheduler: %w", err)
	}
	return state, nil
}
