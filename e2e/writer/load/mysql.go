// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// MySQL opens connections with which rows are inserted.
type MySQL struct {
	User, Password string
	// Table is qualified by its database.
	Table string
	// Writer is the name under which rows are written, Kind how.
	Writer string
	Kind   Kind
	// Group gives the site from the host name that a server reports.
	Group       string
	TLS         *tls.Config
	DialTimeout time.Duration
	Timeout     time.Duration
}

// Schema creates the table that rows go to. The primary key makes it impossible to count a row twice.
func Schema(table string) string {
	return "CREATE TABLE IF NOT EXISTS " + table + ` (
  writer VARCHAR(64) NOT NULL, worker INT NOT NULL, seq BIGINT NOT NULL,
  site VARCHAR(64) NOT NULL, at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (writer, worker, seq))`
}

// Connect opens one connection and asks the server who it is.
func (m MySQL) Connect(ctx context.Context, address string) (Conn, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr = m.User, m.Password, "tcp", address
	cfg.TLS, cfg.InterpolateParams = m.TLS, true
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = m.DialTimeout, m.Timeout, m.Timeout
	cfg.ConnectionAttributes = "program_name:mfg-e2e"
	// The driver reports every lost connection; all that matters here is in the journal.
	cfg.Logger = log.New(io.Discard, "", 0)
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure connection: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.DialTimeout+2*m.Timeout)
	defer cancel()
	dc, err := connector.Connect(ctx)
	if err != nil {
		return nil, classify(err)
	}
	c := &conn{mysql: m, driver: dc}
	if err := c.identify(ctx); err != nil {
		_ = dc.Close()
		return nil, err
	}
	return c, nil
}

type conn struct {
	mysql  MySQL
	driver driver.Conn
	server journal.Server
	sent   time.Duration
}

func (c *conn) Server() journal.Server { return c.server }
func (c *conn) Close() error           { return c.driver.Close() }

// identify reads which server this is: behind a Service it can be any.
func (c *conn) identify(ctx context.Context) error {
	q, ok := c.driver.(driver.QueryerContext)
	if !ok {
		return errors.New("identify server: the driver cannot query")
	}
	rows, err := q.QueryContext(ctx, "SELECT @@server_uuid, COALESCE(@@report_host, '')", nil)
	if err != nil {
		return classify(err)
	}
	defer func() { _ = rows.Close() }()
	got := make([]driver.Value, 2)
	if err := rows.Next(got); err != nil {
		return fmt.Errorf("identify server: %w", err)
	}
	c.server.UUID, c.server.Host = text(got[0]), text(got[1])
	c.server.Site = SiteOfHost(c.mysql.Group, c.server.Host)
	return nil
}

func text(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// SiteOfHost takes the site out of the name of its Service, mysql-GROUP-SITE.NAMESPACE.svc….
func SiteOfHost(group, host string) string {
	first, _, _ := strings.Cut(host, ".")
	site, ok := strings.CutPrefix(first, "mysql-"+group+"-")
	if !ok {
		return host
	}
	return site
}

// Insert commits one row.
func (c *conn) Insert(row Row) error {
	if c.mysql.Kind != Rows {
		return c.commit(row)
	}
	c.sent = Now()
	e, ok := c.driver.(driver.ExecerContext)
	if !ok {
		return errors.New("insert row: the driver cannot execute")
	}
	args := []driver.NamedValue{
		{Ordinal: 1, Value: c.mysql.Writer}, {Ordinal: 2, Value: int64(row.Worker)},
		{Ordinal: 3, Value: row.Seq}, {Ordinal: 4, Value: row.Site},
	}
	// No context to end it: see Conn. The timeouts of the connection do.
	_, err := e.ExecContext(context.Background(),
		"INSERT INTO "+c.mysql.Table+" (writer, worker, seq, site) VALUES (?, ?, ?, ?)", args)
	return classify(err)
}

// Errors with which a server says that it did not begin: read-only, offline, no access, no table, no room for another
// connection. Every other error of a server leaves open what happened, to be on the safe side.
var (
	refusedHere = []uint16{
		1290, // --read-only or --super-read-only
		1836, // read-only mode
		1146, // no such table yet
		1044, 1045, 1049, 1142,
	}
	refusedGone = []uint16{
		3032, // offline mode
		1040, // too many connections
		1203, 1226,
	}
)

func classify(err error) error {
	var said *mysql.MySQLError
	if !errors.As(err, &said) {
		return err
	}
	name := strconv.Itoa(int(said.Number))
	switch {
	case slices.Contains(refusedHere, said.Number):
		return Refusal{Reason: name}
	case slices.Contains(refusedGone, said.Number):
		return Refusal{Reason: name, Gone: true}
	}
	return fmt.Errorf("error %s: %w", name, err)
}
