// SPDX-License-Identifier: Apache-2.0

// Package mysql is everything that is said to mysqld: one file per subject. It carries out and reads back; it decides
// nothing. Every call ends with its context. Statements that hold a password are never logged and never part of an
// error. The facts it rests on were seen on a real server by the tests with build tag mysqld.
package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// Limits of a Target that names none.
const (
	defaultDialTimeout  = time.Second
	defaultQueryTimeout = time.Second
	// longTimeout bounds statements that wait for the server's own threads (STOP REPLICA and the like) when the caller's
	// context has no deadline.
	longTimeout = 60 * time.Second
)

// The pool is small on purpose: a site is polled by one loop, and connections that a partition has cut are only found
// out when they are used.
const (
	maxConns     = 2
	maxIdleConns = 1 // with an age it would have a goroutine of its own, which looks after it
)

// keepAlive finds a cut connection in about five seconds even where no context ends it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}

// Target is a server and the account to use there.
type Target struct {
	// Addr is host:port, or the path of a socket.
	Addr     string
	User     string
	Password string
	// Passwords, if set, are asked for at every new connection and tried in turn instead of Password: while a password is replaced,
	// a server takes one of two. It has to answer at once. It is asked again once all were refused, and may take a moment then.
	Passwords func(ctx context.Context, again bool) []string
	// TLS, if set, is required: there is no fallback to plaintext.
	TLS *tls.Config
	// DialTimeout bounds each connection attempt, QueryTimeout each short statement. Zero means one second.
	DialTimeout, QueryTimeout time.Duration
	// Program names us in the server's process list.
	Program string
}

// String never shows the password.
func (t Target) String() string { return t.User + "@" + t.Addr }

// GoString never shows the password.
func (t Target) GoString() string { return t.String() }

// errNoPassword says that there is nothing to log in with.
var errNoPassword = errors.New("no password is known")

// DB talks to one server. It is safe for concurrent use.
type DB struct {
	target Target
	config *driver.Config
	pool   *sql.DB
	// noClone is set once the server was seen to lack performance_schema.clone_status, which comes with the plugin.
	noClone atomic.Bool
}

// Open prepares to talk to a server. It does no I/O: an unreachable server is found out by the first call.
func Open(t Target) (*DB, error) {
	if t.Addr == "" || t.User == "" {
		return nil, fmt.Errorf("open %s: address and user must be given", t)
	}
	if t.DialTimeout <= 0 {
		t.DialTimeout = defaultDialTimeout
	}
	if t.QueryTimeout <= 0 {
		t.QueryTimeout = defaultQueryTimeout
	}
	db := &DB{target: t, config: configOf(t)}
	pool, err := db.newPool()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", t, err)
	}
	db.pool = pool
	return db, nil
}

// Close closes idle connections; calls that are under way end with their contexts.
func (db *DB) Close() error {
	if err := db.pool.Close(); err != nil {
		return fmt.Errorf("close %s: %w", db.target, err)
	}
	return nil
}

func configOf(t Target) *driver.Config {
	c := driver.NewConfig()
	c.User, c.Passwd, c.Addr, c.Net = t.User, t.Password, t.Addr, "tcp"
	if strings.HasPrefix(t.Addr, "/") {
		c.Net = "unix"
	}
	if t.TLS != nil {
		c.TLS = t.TLS.Clone()
	}
	c.Timeout = t.DialTimeout
	c.AllowNativePasswords = false
	// Placeholders are filled in here: one round trip instead of three, and statements that cannot be prepared take
	// them too. The driver quotes by the connection's own sql_mode.
	c.InterpolateParams = true
	// Errors are returned; nothing is printed behind the caller's back.
	c.Logger = &driver.NopLogger{}
	if t.Program != "" {
		c.ConnectionAttributes = "program_name:" + strings.NewReplacer(",", " ", ":", " ").Replace(t.Program)
	}
	dialer := &net.Dialer{KeepAliveConfig: keepAlive}
	c.DialFunc = dialer.DialContext
	return c
}

func (db *DB) newPool() (*sql.DB, error) {
	connector, err := db.connector()
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(maxConns)
	pool.SetMaxIdleConns(maxIdleConns)
	return pool, nil
}

func (db *DB) connector() (sqldriver.Connector, error) {
	if db.target.Passwords == nil {
		return driver.NewConnector(db.config)
	}
	return inTurn{db}, nil
}

// inTurn connects with the first of several passwords that the server takes.
type inTurn struct{ db *DB }

// Driver is the driver of the connections.
func (inTurn) Driver() sqldriver.Driver { return driver.MySQLDriver{} }

// Connect tries one password after the other. Only a refusal of the password itself leads to the next.
func (c inTurn) Connect(ctx context.Context) (sqldriver.Conn, error) {
	err := errNoPassword
	for _, again := range []bool{false, true} {
		for _, password := range c.db.target.Passwords(ctx, again) {
			config := c.db.config.Clone()
			config.Passwd = password
			var connector sqldriver.Connector
			if connector, err = driver.NewConnector(config); err != nil {
				return nil, err
			}
			var conn sqldriver.Conn
			if conn, err = connector.Connect(ctx); number(err) != numberAccessDenied {
				return conn, err
			}
		}
	}
	return nil, err
}

// onFresh runs do on a connection of its own, made now and closed afterwards: nothing it needs can be stuck in the
// pool, and no session variable it sets survives.
func (db *DB) onFresh(ctx context.Context, do func(*sql.Conn) error) error {
	return db.onFreshReached(ctx, do)
}

// onFreshReached is the same; reach bounds only the way to the server.
func (db *DB) onFreshReached(reach context.Context, do func(*sql.Conn) error) error {
	pool, err := db.newPool()
	if err != nil {
		return err
	}
	// The error of closing says nothing that the work has not said.
	defer func() { _ = pool.Close() }()
	conn, err := pool.Conn(reach)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return do(conn)
}

// short bounds a statement that the server answers from memory.
func (db *DB) short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, db.target.QueryTimeout)
}

// long bounds a statement that waits for something, unless the caller has said how long.
func long(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, longTimeout)
}

// execAll runs statements in order on one connection and stops at the first failure.
func execAll(ctx context.Context, conn *sql.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}
