// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// reloadTLS reads certificate, key and authorities again from the files that the server was started with. If they do not
// fit together the server keeps what it has. The admin interface has no files of its own and follows the main one.
const reloadTLS = "ALTER INSTANCE RELOAD TLS"

// ErrCertificate says that the server did not take its new certificate. It keeps the one that it has.
var ErrCertificate = errors.New("the server refuses its new certificate")

// ReloadTLS makes the server show the certificate that is in its files now. Open connections stay open. It adds no
// transaction, works on a read-only server, and repeating it is safe.
func (db *DB) ReloadTLS(ctx context.Context) error {
	ctx, cancel := long(ctx)
	defer cancel()
	err := db.onFresh(ctx, func(conn *sql.Conn) error { return execAll(ctx, conn, reloadTLS) })
	if number(err) != 0 {
		err = fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	if err != nil {
		return fmt.Errorf("reload certificate of %s: %w", db.target, err)
	}
	return nil
}

// certificateTime is the format in which MySQL writes when a certificate begins and ends.
const certificateTime = "Jan _2 15:04:05 2006 MST"

const servedQuery = `SELECT PROPERTY, VALUE FROM performance_schema.tls_channel_status
 WHERE CHANNEL = 'mysql_main' AND PROPERTY IN ('Ssl_server_not_before', 'Ssl_server_not_after')`

// ServedCertificate asks for the validity of the certificate that the server shows now. An existing connection is enough
// for that.
func (db *DB) ServedCertificate(ctx context.Context) (notBefore, notAfter time.Time, err error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	told := map[string]string{}
	err = db.pairs(ctx, servedQuery, func(property, value string) { told[property] = value })
	if err == nil {
		notBefore, err = time.Parse(certificateTime, told["Ssl_server_not_before"])
	}
	if err == nil {
		notAfter, err = time.Parse(certificateTime, told["Ssl_server_not_after"])
	}
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("read certificate of %s: %w", db.target, err)
	}
	return notBefore, notAfter, nil
}

// plainClientsQuery counts sessions of clients over TCP without TLS. It locks nothing. It leaves out a session that has not logged in yet:
// that may still switch to TLS.
const plainClientsQuery = `SELECT COUNT(*) FROM performance_schema.threads WHERE CONNECTION_TYPE = 'TCP/IP' AND PROCESSLIST_ID IS NOT NULL
 AND PROCESSLIST_USER IS NOT NULL AND PROCESSLIST_USER NOT IN ('unauthenticated user', ?, ?, ?, ?, ?, ?)`

// PlainClients counts the clients that are connected without TLS now; our own accounts do not count.
func (db *DB) PlainClients(ctx context.Context) (int, error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	var n int
	row := db.pool.QueryRowContext(ctx, plainClientsQuery, AccountOperator, AccountSidecar, AccountReplication, AccountClone, AccountProbe, AccountBackup)
	if err := row.Scan(&n); err != nil {
		return 0, fmt.Errorf("count clients without TLS of %s: %w", db.target, err)
	}
	return n, nil
}

// numberAccessDenied is the error for a name or password that the server refuses.
const numberAccessDenied = 1045

// Refusal says in a few words why we cannot talk to a server that we can reach: its certificate, or our password. It is
// empty for every other error. It holds nothing that changes from one try to the next.
func Refusal(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired && invalid.Cert != nil {
			return fmt.Sprintf("the certificate that it shows is valid from %s to %s", day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
		}
		return "the certificate that it shows is invalid: " + invalid.Error()
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate that it shows is not signed by the group's ca.crt"
	}
	if other, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate that it shows does not name " + other.Host
	}
	if number(err) == numberAccessDenied {
		return "it refuses our password"
	}
	return ""
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }
