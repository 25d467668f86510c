// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Hold opens a session on a site as the application and leaves it open after these statements. One that sleeps is not
// waited for.
func (s *Scene) Hold(ctx context.Context, name, site string, statements ...string) error {
	hold := &sessions{}
	return s.Fault(ctx, name, func(ctx context.Context) error {
		conn, err := hold.open(ctx, s, site)
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if strings.Contains(statement, "SLEEP(") {
				// It ends with its session, with an error that is of no interest: to be cut is its part.
				go func() { _, _ = conn.ExecContext(hold.life, statement) }()
				continue
			}
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("run %q on %s: %w", statement, site, err)
			}
		}
		return nil
	}, hold.close)
}

// sessions are connections that stay open.
type sessions struct {
	db    *sql.DB
	conns []*sql.Conn
	life  context.Context
	end   context.CancelFunc
}

func (h *sessions) open(ctx context.Context, s *Scene, site string) (*sql.Conn, error) {
	if h.db == nil {
		db, err := s.Dial(ctx, site)
		if err != nil {
			return nil, err
		}
		h.db = db
		h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
	}
	conn, err := h.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", site, err)
	}
	h.conns = append(h.conns, conn)
	return conn, nil
}

// close ends all sessions. It does not wait: a server that is cut off would not answer to a farewell.
func (h *sessions) close(context.Context) error {
	if h.db == nil {
		return nil
	}
	h.end()
	go func() {
		for _, conn := range h.conns {
			_ = conn.Close()
		}
		_ = h.db.Close()
	}()
	return nil
}

// Crowd opens sessions on a site as the application until there is room for no other.
func (s *Scene) Crowd(ctx context.Context, site string, limit int) error {
	crowd := &sessions{}
	return s.Fault(ctx, fmt.Sprintf("all %d connections of %s are taken", limit, site), func(ctx context.Context) error {
		if _, err := s.RootSQL(ctx, site, fmt.Sprintf("SET GLOBAL max_connections=%d", limit)); err != nil {
			return err
		}
		for range 2 * limit {
			switch _, err := crowd.open(ctx, s, site); {
			case err == nil:
			case strings.Contains(err.Error(), "1040"):
				return nil
			default:
				return err
			}
		}
		return errors.New("the limit was not reached")
	}, func(ctx context.Context) error {
		_, err := s.RootSQL(ctx, site, "SET GLOBAL max_connections=DEFAULT")
		return errors.Join(err, crowd.close(ctx))
	})
}

// ask tries until it succeeds, as stage.Poll does, but with time between the tries: every question that goes through
// kubectl exec costs more than the group itself.
func ask(ctx context.Context, limit time.Duration, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if pause(ctx, askInterval) != nil {
			return fmt.Errorf("wait %s for %s: %w", limit, what, err)
		}
	}
}

const askInterval = 2 * time.Second

// Query runs SQL as root on a site and returns what it prints, without the last line break.
func (s *Scene) Query(ctx context.Context, site, statements string) (string, error) {
	out, err := s.RootSQL(ctx, site, statements)
	return strings.TrimSpace(out), err
}

// MustBeReadOnly waits until a site's MySQL answers; its very first answer must be that it is read-only.
func (s *Scene) MustBeReadOnly(ctx context.Context, site string) error {
	s.Say("  expect: %s comes up read-only", site)
	answer := ""
	if err := ask(ctx, patience, "MySQL of "+site, func(ctx context.Context) error {
		var err error
		answer, err = s.Query(ctx, site, "SELECT @@super_read_only")
		return err
	}); err != nil {
		return err
	}
	if answer != "1" {
		return fmt.Errorf("super_read_only of %s is %s at its first answer", site, answer)
	}
	return nil
}

// Err adds a row on a site that is not active: an errant transaction, as a person makes one who lifts the fence. Clients
// are kept out meanwhile, so that it is the only one.
func (s *Scene) Err(ctx context.Context, site string) error {
	return s.Fault(ctx, "somebody lifts the fence of "+site+" and writes there", func(ctx context.Context) error {
		made, err := s.Query(ctx, site, "SET @before=@@global.gtid_executed; "+clientsOut+"SET GLOBAL super_read_only=OFF; SET GLOBAL read_only=OFF; "+
			"INSERT INTO app.writes (writer, worker, seq, site) VALUES (UUID(), 0, 0, 'errant'); "+
			"SET GLOBAL super_read_only=ON; SET GLOBAL offline_mode=OFF; "+
			"SELECT REPLACE(GTID_SUBTRACT(@@global.gtid_executed, @before), CHAR(10), '')")
		if err != nil {
			return err
		}
		return s.W.Excuse(site, made)
	}, nil)
}

// clientsOut is for scenes in which root does what opens a site: the direct writers would be let in with it.
const clientsOut = "SET GLOBAL offline_mode=ON; "
