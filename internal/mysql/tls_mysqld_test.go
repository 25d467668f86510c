// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// shown connects again to a port of a server and returns the serial number of the certificate that it shows.
func shown(t *testing.T, port int) string {
	t.Helper()
	var serial string
	c := driver.NewConfig()
	c.Net, c.Addr, c.Logger = "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &driver.NopLogger{}
	c.User, c.Passwd = mysql.AccountOperator, mysqltest.Passwords.Operator
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		serial = s.PeerCertificates[0].SerialNumber.String()
		return nil
	}}
	connector, err := driver.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := connector.Connect(budget(t))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	return serial
}

// TestARenewedCertificateIsShownWithoutARestart also shows that it needs no more than the sidecar's account, on a fenced
// server, and that an open connection goes on.
func TestARenewedCertificateIsShownWithoutARestart(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{TLS: true})
	sidecar := s.Sidecar(t)
	before := status(t, sidecar)
	conn, err := s.Client(t, mysql.AccountOperator, mysqltest.Passwords.Operator).Conn(budget(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var id, again int
	if err := conn.QueryRowContext(budget(t), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	serial := s.RenewCertificate(t)
	if shown(t, s.Port) == serial {
		t.Fatal("MySQL takes a new file by itself: nothing is tested")
	}
	if err := sidecar.ReloadTLS(budget(t)); err != nil {
		t.Fatal(err)
	}
	for name, port := range map[string]int{"main": s.Port, "admin": s.AdminPort} {
		if got := shown(t, port); got != serial {
			t.Errorf("the %s interface shows %s, want %s", name, got, serial)
		}
	}
	if err := conn.QueryRowContext(budget(t), "SELECT CONNECTION_ID()").Scan(&again); err != nil || again != id {
		t.Errorf("the open connection %d became %d: %v", id, again, err)
	}
	after := status(t, sidecar)
	if len(s.Exits()) != 0 || !after.SuperReadOnly || !after.Executed.Equal(before.Executed) {
		t.Errorf("exits %v, %+v", s.Exits(), after)
	}
	begins, ends, err := sidecar.ServedCertificate(budget(t))
	if err != nil || time.Until(ends) > 25*time.Hour || time.Until(ends) < 20*time.Hour || time.Since(begins) < 30*time.Minute {
		t.Errorf("valid from %v to %v: %v", begins, ends, err)
	}
}

// TestReloadTLSOnAnOpenServerAddsNothing: the statement must not become a transaction, which replicas would repeat.
func TestReloadTLSOnAnOpenServerAddsNothing(t *testing.T) {
	s := writable(t, mysqltest.Options{TLS: true})
	before := status(t, s.Operator(t)).Executed
	if err := s.Sidecar(t).ReloadTLS(budget(t)); err != nil {
		t.Fatal(err)
	}
	if after := status(t, s.Operator(t)).Executed; !after.Equal(before) {
		t.Errorf("executed %s became %s", before, after)
	}
}

func TestAKeyThatDoesNotFitLeavesTheCertificate(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{TLS: true})
	serial := shown(t, s.Port)
	s.SpoilKey(t)
	if err := s.Sidecar(t).ReloadTLS(budget(t)); !errors.Is(err, mysql.ErrCertificate) {
		t.Errorf("error %v", err)
	}
	for _, port := range []int{s.Port, s.AdminPort} {
		if got := shown(t, port); got != serial {
			t.Errorf("port %d shows %s, want %s", port, got, serial)
		}
	}
}

// TestAReplicaFollowsThroughAChangeOfTheAuthority: the replica reads SOURCE_SSL_CA for each connection, and one that it
// cannot make because the two sites have different files for a while it tries again.
func TestAReplicaFollowsThroughAChangeOfTheAuthority(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{TLS: true})
	source.ReplaceAuthority(t)
	if err := source.Sidecar(t).ReloadTLS(budget(t)); err != nil {
		t.Fatal(err)
	}
	cutReplicas(t, source)
	// The replica still trusts the former authority only.
	st := replicaStatus(t, replica.Operator(t), "the replica refuses its source", func(st mysql.Status) bool { return !st.Replica.IORunning && st.Replica.IOErrno != 0 })
	t.Logf("the receiver says %d: %s", st.Replica.IOErrno, st.Replica.IOError)
	replica.ReplaceAuthority(t)
	replicaStatus(t, replica.Operator(t), "the replica follows again, by itself", func(st mysql.Status) bool { return st.Replica.IORunning })
	source.Exec(t, "CREATE DATABASE after_the_change")
	mysqltest.Eventually(t, "the replica applied what came after", func() bool {
		var n int
		row := replica.Root(t).QueryRowContext(budget(t), "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'after_the_change'")
		return row.Scan(&n) == nil && n == 1
	})
}

// cutReplicas ends the connections of a source's replicas, as a short fault of the network does.
func cutReplicas(t *testing.T, source *mysqltest.Server) {
	t.Helper()
	rows, err := source.Root(t).QueryContext(budget(t), "SELECT ID FROM performance_schema.processlist WHERE COMMAND LIKE 'Binlog Dump%'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil || len(ids) == 0 {
		t.Fatalf("replicas %v: %v", ids, err)
	}
	for _, id := range ids {
		source.Exec(t, "KILL "+id)
	}
}

func TestRefusalTellsTheCertificate(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{TLS: true})
	target := s.Target(mysql.AccountOperator, mysqltest.Passwords.Operator)
	for name, tc := range map[string]struct {
		tls  *tls.Config
		pass string
		want string
	}{
		"authority": {tls: mysqltest.NextClientTLS(), want: "not signed by"},
		"name":      {tls: &tls.Config{RootCAs: mysqltest.ClientTLS().RootCAs, ServerName: "mysql-a.shop.svc", MinVersion: tls.VersionTLS12}, want: "does not name mysql-a.shop.svc"},
		"expired": {tls: &tls.Config{RootCAs: mysqltest.ClientTLS().RootCAs, MinVersion: tls.VersionTLS12,
			Time: func() time.Time { return time.Now().Add(48 * time.Hour) }}, want: "is valid from"},
		"password": {tls: mysqltest.ClientTLS(), pass: "wrong", want: "refuses our password"},
		"fine":     {tls: mysqltest.ClientTLS()},
	} {
		target := target
		if target.TLS = tc.tls; tc.pass != "" {
			target.Password = tc.pass
		}
		_, err := mysqltest.Open(t, target).Status(budget(t))
		if got := mysql.Refusal(err); !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q (%v)", name, got, tc.want, err)
		}
	}
}
