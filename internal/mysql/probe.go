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

// probeStatements commit one change as a client does, outside the binary log. What the first one adds the second one takes
// away, so that no two sites ever differ by it; the commit waits for the redo log on disk all the same. The table is one
// that MySQL makes on every site: it is encrypted where sites are, comes with every clone, and is nobody's database.
var probeStatements = []string{
	"SET SESSION sql_log_bin = 0, SESSION lock_wait_timeout = 1, SESSION innodb_lock_wait_timeout = 1",
	"START TRANSACTION",
	"INSERT INTO sys.sys_config (variable, value, set_by) VALUES ('mfg.write_probe', '1', 'mfg')",
	"DELETE FROM sys.sys_config WHERE variable = 'mfg.write_probe'",
	"COMMIT",
}

// ProbeWrite writes as a client would, over a connection of its own, which it closes. The target is AccountProbe on the
// port of the clients. When ctx ends the connection is cut; what hangs inside the server ends there as soon as it can.
func (db *DB) ProbeWrite(ctx context.Context) error {
	err := db.onFresh(ctx, func(conn *sql.Conn) error { return execAll(ctx, conn, probeStatements...) })
	if err != nil {
		return fmt.Errorf("write to %s: %w", db.target, err)
	}
	return nil
}

// ProbeFailure is what came of a write that failed, in one word.
type ProbeFailure string

// What can come of it.
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
	// ProbeLocked: a lock on the whole server stands in the way.
	ProbeLocked ProbeFailure = "Locked"
	// ProbeRefused: the server refuses the write for another reason.
	ProbeRefused ProbeFailure = "WriteRefused"
	// ProbeUnable: it is the probe that cannot, not the clients: its account, a right or its table is missing.
	ProbeUnable ProbeFailure = "ProbeUnable"
)

// probeFailures are the numbers of the server's errors.
var probeFailures = map[uint16]ProbeFailure{
	3032: ProbeOffline, 1290: ProbeReadOnly, 1836: ProbeReadOnly, 1040: ProbeTooManyConnections, 3159: ProbeSecureTransport,
	1021: ProbeDiskFull, 1114: ProbeDiskFull, numberLockWaitTimeout: ProbeLocked,
	// Its sessions of before still hang.
	1203: ProbeNoAnswer, 1226: ProbeNoAnswer,
	// Cut in the middle: by a fence, by a person, or by the end of the server.
	1317: ProbeNoAnswer, 1053: ProbeNoAnswer, 1927: ProbeNoAnswer, 4031: ProbeNoAnswer,
	// The account, its password, its rights, the table.
	1044: ProbeUnable, 1045: ProbeUnable, 1130: ProbeUnable, 1251: ProbeUnable, 1524: ProbeUnable, 1820: ProbeUnable, 1862: ProbeUnable, 3118: ProbeUnable,
	1049: ProbeUnable, 1142: ProbeUnable, 1143: ProbeUnable, numberNoSuchTable: ProbeUnable, numberRightMissing: ProbeUnable, 1370: ProbeUnable,
	1449: ProbeUnable, 1062: ProbeUnable,
}

// ProbeFailureOf tells what an error of ProbeWrite means, and the server's number of it; 0 if the server said nothing.
func ProbeFailureOf(err error) (ProbeFailure, int) {
	if n := number(err); n != 0 {
		if f, known := probeFailures[n]; known {
			return f, int(n)
		}
		return ProbeRefused, int(n)
	}
	if unverified(err) || errors.Is(err, driver.ErrNoTLS) {
		// Whether the certificate is as it should be tells the condition TLSReady.
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
