// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"
)

// probeStatements commit one change as a client does, outside the binary log. The DELETE removes the row that the INSERT
// adds, so that no two sites ever differ by it; the commit still waits for the redo log on disk. MySQL makes the table on
// every site: it is encrypted where sites are, comes with every clone, and belongs to no database of users.
var probeStatements = []string{
	"SET SESSION sql_log_bin = 0, SESSION lock_wait_timeout = 1, SESSION innodb_lock_wait_timeout = 1",
	"START TRANSACTION",
	"INSERT INTO sys.sys_config (variable, value, set_by) VALUES ('mfg.write_probe', '1', 'mfg')",
	"DELETE FROM sys.sys_config WHERE variable = 'mfg.write_probe'",
	"COMMIT",
}

// ProbeWrite writes as a client would, over a connection of its own, which it closes. The target is AccountProbe on the
// port of the clients. When ctx ends, it cuts the connection; a statement that hangs in the server ends as soon as it can.
func (db *DB) ProbeWrite(ctx context.Context) error {
	err := db.onFresh(ctx, func(conn *sql.Conn) error { return execAll(ctx, conn, probeStatements...) })
	if err != nil {
		return fmt.Errorf("write to %s: %w", db.target, err)
	}
	return nil
}

// ProbeFailure says in one word why a write failed.
type ProbeFailure string

// Why a write can fail.
const (
	// ProbeNoAnswer: the server did not answer in time, or hung up.
	ProbeNoAnswer ProbeFailure = "NoAnswer"
	// ProbeOffline: offline_mode is on.
	ProbeOffline ProbeFailure = "Offline"
	// ProbeReadOnly: read_only or super_read_only is on.
	ProbeReadOnly ProbeFailure = "ReadOnly"
	// ProbeTooManyConnections: all connections are taken.
	ProbeTooManyConnections ProbeFailure = "TooManyConnections"
	// ProbeSecureTransport: require_secure_transport is on, and the group has no certificate.
	ProbeSecureTransport ProbeFailure = "SecureTransportRequired"
	// ProbeDiskFull: the server says that its disk is full.
	ProbeDiskFull ProbeFailure = "DiskFull"
	// ProbeLocked: another session's lock prevents the write.
	ProbeLocked ProbeFailure = "Locked"
	// ProbeRefused: the server refuses the write for another reason.
	ProbeRefused ProbeFailure = "WriteRefused"
	// ProbeUnable: only the probe cannot write, not the clients: its account, a right or its table is missing.
	ProbeUnable ProbeFailure = "ProbeUnable"
)

// probeFailures are the numbers of the server's errors.
var probeFailures = map[uint16]ProbeFailure{
	3032: ProbeOffline, 1290: ProbeReadOnly, 1836: ProbeReadOnly, 1040: ProbeTooManyConnections, 3159: ProbeSecureTransport,
	1021: ProbeDiskFull, 1114: ProbeDiskFull, numberLockWaitTimeout: ProbeLocked,
	// Earlier sessions of the probe still hang.
	1203: ProbeNoAnswer, 1226: ProbeNoAnswer,
	// The session was cut: by a fence, by a person, or by the end of the server.
	1317: ProbeNoAnswer, 1053: ProbeNoAnswer, 1927: ProbeNoAnswer, 4031: ProbeNoAnswer,
	// The account, its password, its rights, the table.
	1044: ProbeUnable, 1045: ProbeUnable, 1130: ProbeUnable, 1251: ProbeUnable, 1524: ProbeUnable, 1820: ProbeUnable, 1862: ProbeUnable, 3118: ProbeUnable,
	1049: ProbeUnable, 1142: ProbeUnable, 1143: ProbeUnable, numberNoSuchTable: ProbeUnable, numberRightMissing: ProbeUnable, 1370: ProbeUnable,
	1449: ProbeUnable, 1062: ProbeUnable,
}

// ProbeFailureOf says what an error of ProbeWrite means, and returns the server's number for it; 0 if the server gave none.
func ProbeFailureOf(err error) (ProbeFailure, int) {
	if n := number(err); n != 0 {
		if f, known := probeFailures[n]; known {
			return f, int(n)
		}
		return ProbeRefused, int(n)
	}
	if unverified(err) || errors.Is(err, driver.ErrNoTLS) {
		// The condition TLSReady says whether the certificate is good.
		return ProbeUnable, 0
	}
	return ProbeNoAnswer, 0
}

func unverified(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return verification || unknown || invalid
}
