// SPDX-License-Identifier: Apache-2.0

// Package mysql holds everything that our programs say to mysqld: one file per subject. It carries out and reads back; it
// decides nothing. Every call ends with its context. Statements that hold a password are never logged and never part of an
// error. The tests with build tag mysqld check the facts that it relies on against a real server.
package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/internal/mysql/bounded"
)

// Limits of a Target that names none.
const (
	defaultDialTimeout  = time.Second
	defaultQueryTimeout = time.Second
	// longTimeout bounds statements that wait for the server's own threads (STOP REPLICA and the like) when the caller's
	// context has no deadline.
	longTimeout = 60 * time.Second
)

// The pool is small on purpose: one loop polls a site, and only use shows that a partition has cut a connection.
const (
	maxConns     = 2
	maxIdleConns = 1 // it has no maximum age, because the pool would need a goroutine for that
)

// Target is a server and the account to use there.
type Target struct {
	// Addr is host:port, or the path of a socket.
	Addr     string
	User     string
	Password string
	// Passwords, if set, is called for every new connection, and its passwords are tried in turn instead of Password: while a password
	// is being replaced, a server takes one of two. It has to answer at once. If all are refused it is called again, and then may take a moment.
	Passwords func(ctx context.Context, again bool) []string
	// TLS, if set, is required: there is no fallback to plaintext.
	TLS *tls.Config
	// DialTimeout bounds each connection attempt, QueryTimeout each short statement. Zero means one second.
	DialTimeout, QueryTimeout time.Duration
	// Program names us in the server's process list.
	Program string
	// Unbounded is for programs that ask one group's servers only, and read whole lists. Others fail at an answer above bounded.Most.
	Unbounded bool
}

// String never shows the password.
func (t Target) String() string { return t.User + "@" + t.Addr }

// GoString never shows the password.
func (t Target) GoString() string { return t.String() }

// errNoPassword says that there is no password to log in with.
var errNoPassword = errors.New("no password is known")

// DB talks to one server. It is safe for concurrent use.
type DB struct {
	target Target
	config *driver.Config
	pool   *sql.DB
	// noClone is set once a look found that the server lacks performance_schema.clone_status, which comes with the plugin.
	noClone atomic.Bool
	answers bounded.Answers
}

// Open prepares to talk to a server. It does no I/O: only the first call shows that a server is unreachable.
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
	if !t.Unbounded {
		db.config.DialFunc = db.answers.Dial
	}
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
	// spec.mysqlConf limits what clients may ask; a look of ours that it cuts would pass for a server that fails. One more round trip.
	c.Params = map[string]string{"max_execution_time": "0", "sql_big_selects": "1"}
	// The driver returns errors and must not print anything as well.
	c.Logger = &driver.NopLogger{}
	if t.Program != "" {
		c.ConnectionAttributes = "program_name:" + strings.NewReplacer(",", " ", ":", " ").Replace(t.Program)
	}
	c.DialFunc = bounded.Dial
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

// inTurn tries several passwords, and connects with the first that the server takes.
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

// onFresh runs do on a connection of its own, made now and closed afterwards: do depends on no connection that may be
// stuck in the pool, and no session variable that it sets survives.
func (db *DB) onFresh(ctx context.Context, do func(*sql.Conn) error) error {
	return db.onFreshReached(ctx, do)
}

// onFreshReached is the same; reach bounds only the way to the server.
func (db *DB) onFreshReached(reach context.Context, do func(*sql.Conn) error) error {
	pool, err := db.newPool()
	if err != nil {
		return err
	}
	// An error of Close would say nothing that the work has not said.
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

// long bounds a statement that waits for something, unless the caller's context has a deadline.
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
