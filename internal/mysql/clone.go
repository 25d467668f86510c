// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Donor is the server to clone from.
type Donor struct {
	Host           string
	Port           int
	User, Password string
	// RequireTLS refuses plaintext; encrypted data cannot be cloned without it.
	RequireTLS bool
	// Files are those that the recipient uses for its TLS connection to the donor from now on; nil keeps those that it has.
	Files *CloneFiles
}

// CloneFiles are paths on the recipient: of the authority that must have signed the donor's certificate, and of the recipient's own
// certificate and key. Without CA the donor is not verified, and the connection is encrypted if the donor supports that.
type CloneFiles struct{ CA, Cert, Key string }

// String never shows the password.
func (d Donor) String() string { return fmt.Sprintf("%s@%s:%d", d.User, d.Host, d.Port) }

// GoString never shows the password.
func (d Donor) GoString() string { return d.String() }

// CloneStatus is the last clone that this server received.
type CloneStatus struct {
	// State is "Not Started", "In Progress", "Completed", "Failed", or empty if there never was one.
	State   string
	ErrorNo int
	Message string
	// Source is the donor's host:port.
	Source string
	// Began is when it began, as the server writes it: it distinguishes one clone from the next.
	Began string
	// BeganAt is the same as a time, by the server's clock; zero if it never began.
	BeganAt time.Time
	Stages  []CloneStage
}

// CloneStage is one step of a clone.
type CloneStage struct {
	Stage, State string
	// Estimate and Data are bytes.
	Estimate, Data int64
}

// Clone replaces all data of the server by the donor's and restarts it. It takes as long as it takes: only ctx bounds
// it. nil means that the data is in place and the server goes down to restart. ErrCloneOutcomeUnknown means that the
// connection ended first: CloneStatus shows the result once the server is back. Any other error means that the server
// refused or gave up; its former data may be gone.
//
// The server keeps its server_uuid, unless its supervisor calls datadir.RenewIdentity before it starts again.
//
// Clone refuses a server that accepts writes with ErrWritable. One with databases needs a window (BeginWindow). All accounts are then the donor's.
func (db *DB) Clone(ctx context.Context, donor Donor) error {
	if donor.Host == "" || donor.Port <= 0 || donor.User == "" {
		return fmt.Errorf("clone from %s: %w: host, port and user must be given", donor, ErrRefused)
	}
	reach, cancel := context.WithTimeout(ctx, db.target.DialTimeout+db.target.QueryTimeout)
	defer cancel()
	err := db.onFreshReached(reach, func(conn *sql.Conn) error { return clone(ctx, conn, donor) })
	if err != nil {
		return fmt.Errorf("clone %s from %s: %w", db.target, donor, err)
	}
	return nil
}

func clone(ctx context.Context, conn *sql.Conn, donor Donor) error {
	if err := readyToClone(ctx, conn, donor); err != nil {
		return err
	}
	statement := fmt.Sprintf("CLONE INSTANCE FROM ?@?:%d IDENTIFIED BY ?", donor.Port)
	if donor.RequireTLS {
		statement += " REQUIRE SSL"
	}
	_, err := conn.ExecContext(ctx, statement, donor.User, donor.Host, donor.Password)
	switch {
	case err == nil:
		return nil
	case number(err) == numberNotSupervised:
		// The data is there, but mysqld thinks that it has no supervisor. It is not known here whether it comes back.
		return fmt.Errorf("%w: the server ends without a supervisor (error %d)", ErrCloneOutcomeUnknown, numberNotSupervised)
	case number(err) == 0:
		// The connection is gone, or ctx has ended: the clone may continue without us.
		return errors.Join(ErrCloneOutcomeUnknown, withoutSecret(err, donor.Password))
	default:
		return withoutSecret(err, donor.Password)
	}
}

// readyToClone does what comes before the statement. preludeTimeout bounds it: the caller decided on a look at both servers, and
// that look must still be recent when the clone begins.
func readyToClone(ctx context.Context, conn *sql.Conn, donor Donor) error {
	ctx, cancel := context.WithTimeout(ctx, preludeTimeout)
	defer cancel()
	var readOnly bool
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only").Scan(&readOnly); err != nil {
		return fmt.Errorf("read read_only: %w", err)
	}
	if !readOnly {
		// The caller decided on an old look: the data of a server that accepts writes must never be replaced. A window keeps
		// read_only on.
		return ErrWritable
	}
	donors := fmt.Sprintf("%s:%d", donor.Host, donor.Port)
	if _, err := conn.ExecContext(ctx, "SET GLOBAL clone_valid_donor_list = ?", donors); err != nil {
		return fmt.Errorf("set clone_valid_donor_list: %w", err)
	}
	if err := takeCloneFiles(ctx, conn, donor.Files); err != nil {
		return err
	}
	return letTablesGo(ctx, conn)
}

func takeCloneFiles(ctx context.Context, conn *sql.Conn, files *CloneFiles) error {
	if files == nil {
		return nil
	}
	for _, f := range []struct{ name, path string }{{"clone_ssl_ca", files.CA}, {"clone_ssl_cert", files.Cert}, {"clone_ssl_key", files.Key}} {
		var err error
		if f.path == "" {
			_, err = conn.ExecContext(ctx, "SET GLOBAL "+f.name+" = DEFAULT") // MySQL would take an empty text for a file
		} else {
			_, err = conn.ExecContext(ctx, "SET GLOBAL "+f.name+" = ?", f.path)
		}
		if err != nil {
			return fmt.Errorf("set %s: %w", f.name, err)
		}
	}
	return nil
}

// letTablesGo ends everything that holds a table of a server whose data is about to go. A clone first drops every table and waits
// for its metadata lock, for a year by default (9.7.4). Idle transactions of administrators hold one, and so do prepared XA
// transactions, even without a connection. Outside a window it changes nothing: the server itself refuses if it has anything to drop.
func letTablesGo(ctx context.Context, conn *sql.Conn) error {
	var closed bool
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.super_read_only").Scan(&closed); err != nil {
		return fmt.Errorf("read super_read_only: %w", err)
	}
	if closed {
		return nil
	}
	if _, err := killSessions(ctx, conn); err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	// A session that takes a table after that makes the clone fail; the caller gets the error and tries again.
	if err := execAll(ctx, conn, "SET SESSION lock_wait_timeout = 60", "SET SESSION sql_log_bin = OFF"); err != nil {
		return err
	}
	xids, err := preparedXA(ctx, conn)
	if err != nil {
		return fmt.Errorf("list prepared XA transactions: %w", err)
	}
	for _, xid := range xids {
		if _, err := conn.ExecContext(ctx, "XA ROLLBACK "+xid); err != nil {
			return fmt.Errorf("roll back prepared XA transaction %s: %w", xid, err)
		}
	}
	return nil
}

// preparedXA names the prepared XA transactions in the form that XA COMMIT and XA ROLLBACK take.
func preparedXA(ctx context.Context, conn *sql.Conn) (xids []string, err error) {
	rows, err := conn.QueryContext(ctx, "XA RECOVER CONVERT XID")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var format, first, second int
		var data string
		if err := rows.Scan(&format, &first, &second, &data); err != nil {
			return nil, err
		}
		xid, err := parseXID(format, first, second, data)
		if err != nil {
			return nil, err
		}
		xids = append(xids, xid)
	}
	return xids, rows.Err()
}

// parseXID reads a row of XA RECOVER CONVERT XID: both parts of the name in hexadecimal, one after the other, and how many bytes each has.
func parseXID(format, first, second int, data string) (string, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(data, "0x"))
	if err != nil || first < 0 || second < 0 || len(raw) != first+second {
		return "", fmt.Errorf("name %q of a prepared XA transaction: want %d bytes in hexadecimal", data, first+second)
	}
	return fmt.Sprintf("X'%X',X'%X',%d", raw[:first], raw[first:], format), nil
}

// preludeTimeout bounds what happens on the recipient before the statement of a clone.
const preludeTimeout = 5 * time.Second

// cancelTimeout bounds the KILL of a clone, which on a busy machine takes milliseconds.
const cancelTimeout = 10 * time.Second

// CancelClone ends a clone that the server receives: its statement ends with an error. The server stays up, without most
// of its former data, until it is cloned again. Without a clone it does nothing.
//
// ErrCloneHangs means that the KILL did not return within 10 s. KILL wakes the session from its wait for the donor, and
// spins until it has left that wait; if the session waits again before KILL has seen that, KILL never wakes it again (9.7.4;
// seen with gdb, in 1 of about 70 on a busy machine). Then both hang, while the server answers others.
func (db *DB) CancelClone(ctx context.Context) error {
	session, err := db.cloneSession(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find clone of %s: %w", db.target, err)
	}
	bounded, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	_, err = db.pool.ExecContext(bounded, fmt.Sprintf("KILL QUERY %d", session))
	switch {
	case err == nil || number(err) == numberNoSuchThread:
		return nil // a clone that ended meanwhile is as good as cancelled
	case bounded.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("cancel clone of %s: %w within %s: %w", db.target, ErrCloneHangs, cancelTimeout, err)
	default:
		return fmt.Errorf("cancel clone of %s: %w", db.target, err)
	}
}

func (db *DB) cloneSession(ctx context.Context) (session int64, err error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	err = db.pool.QueryRowContext(ctx, cloneSessionQuery).Scan(&session)
	return session, err
}

const (
	cloneSessionQuery = "SELECT PID FROM performance_schema.clone_status WHERE STATE IN ('Not Started', 'In Progress') AND PID > 0"

	// A server that ended while it received a clone reports it as in progress for ever, with error 1317 and no session.
	cloneStatusQuery   = "SELECT IF(STATE = 'In Progress' AND PID = 0 AND ERROR_NO <> 0, 'Failed', STATE), ERROR_NO, ERROR_MESSAGE, SOURCE, BEGIN_TIME, UNIX_TIMESTAMP(BEGIN_TIME) FROM performance_schema.clone_status ORDER BY ID DESC LIMIT 1"
	cloneProgressQuery = "SELECT STAGE, STATE, COALESCE(ESTIMATE, 0), COALESCE(DATA, 0) FROM performance_schema.clone_progress ORDER BY ID, BEGIN_TIME IS NULL, BEGIN_TIME"
)

// CloneStatus reads the last clone; it survives the restart that ends a clone.
func (db *DB) CloneStatus(ctx context.Context) (CloneStatus, error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	var st CloneStatus
	var message, source, began sql.NullString
	var at sql.NullFloat64
	row := db.pool.QueryRowContext(ctx, cloneStatusQuery)
	err := row.Scan(&st.State, &st.ErrorNo, &message, &source, &began, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return CloneStatus{}, nil
	}
	if err != nil {
		return CloneStatus{}, fmt.Errorf("read clone status of %s: %w", db.target, err)
	}
	st.Message, st.Source, st.Began = message.String, source.String, began.String
	if at.Float64 > 0 {
		st.BeganAt = time.UnixMilli(int64(at.Float64 * 1000)).UTC()
	}
	if st.Stages, err = db.cloneStages(ctx); err != nil {
		return CloneStatus{}, fmt.Errorf("read clone progress of %s: %w", db.target, err)
	}
	return st, nil
}

func (db *DB) cloneStages(ctx context.Context) (stages []CloneStage, err error) {
	rows, err := db.pool.QueryContext(ctx, cloneProgressQuery)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s CloneStage
		if err := rows.Scan(&s.Stage, &s.State, &s.Estimate, &s.Data); err != nil {
			return nil, err
		}
		stages = append(stages, s)
	}
	return stages, rows.Err()
}
