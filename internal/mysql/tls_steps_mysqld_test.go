// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestSitesWithAndWithoutACertificateReplicate: in both directions, and whoever has one is verified once it is asked for, while the applier goes
// on. One that cannot be verified is followed as before.
func TestSitesWithAndWithoutACertificateReplicate(t *testing.T) {
	without, with := writable(t, mysqltest.Options{}), mysqltest.Start(t, mysqltest.Options{TLS: true})
	db := with.Operator(t)
	src := sourceOf(without)
	if err := db.Follow(budget(t), src); err != nil {
		t.Fatal(err)
	}
	catchUp(t, without, with)
	wanted := src
	wanted.TLS, wanted.CA = true, mysqltest.CA
	err := db.VerifySource(budget(t), wanted)
	if !errors.Is(err, mysql.ErrUnverified) {
		t.Errorf("a source without a certificate is verified: %v", err)
	}
	without.Exec(t, insert)
	catchUp(t, without, with)
	if st := status(t, db); st.Replica == nil || !st.Replica.IORunning || !st.Replica.SQLRunning {
		t.Errorf("it follows no more: %+v", st.Replica)
	}
	if err := db.Follow(budget(t), src); err != nil {
		t.Error(err)
	}
}

// TestAReceiverIsChangedWhileItsApplierGoesOn also asks for it again, and of a receiver that somebody stopped.
func TestAReceiverIsChangedWhileItsApplierGoesOn(t *testing.T) {
	source, replica := writable(t, mysqltest.Options{TLS: true}), mysqltest.Start(t, mysqltest.Options{TLS: true})
	db := replica.Operator(t)
	plain := sourceOf(source)
	plain.TLS, plain.CA = false, ""
	if err := db.Follow(budget(t), plain); err != nil {
		t.Fatal(err)
	}
	catchUp(t, source, replica)
	verified := plain
	verified.TLS, verified.CA = true, mysqltest.CA
	since := appliedSince(t, replica)
	for range 2 {
		if err := db.VerifySource(budget(t), verified); err != nil {
			t.Fatal(err)
		}
	}
	if again := appliedSince(t, replica); again != since {
		t.Errorf("the applier was started anew: thread %s, then %s", since, again)
	}
	var how string
	row := replica.Root(t).QueryRowContext(budget(t), "SELECT CONCAT(SSL_VERIFY_SERVER_CERTIFICATE, ' ', SSL_CA_FILE) FROM performance_schema.replication_connection_configuration")
	if err := row.Scan(&how); err != nil || how != "YES "+mysqltest.CA {
		t.Errorf("the channel verifies: %q, %v", how, err)
	}
	source.Exec(t, insert)
	catchUp(t, source, replica)
	if err := db.Follow(budget(t), verified); err != nil {
		t.Error(err)
	}
	// It is what Follow would have set: asked again, Follow changes nothing.
	if again := appliedSince(t, replica); again != since {
		t.Errorf("Follow started it anew: thread %s, then %s", since, again)
	}
	if err := db.StopReceiver(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.VerifySource(budget(t), verified); !errors.Is(err, mysql.ErrNotFollowing) {
		t.Errorf("a receiver that was stopped: %v", err)
	}
	if st := status(t, db); st.Replica == nil || st.Replica.IORunning {
		t.Errorf("it was started: %+v", st.Replica)
	}
}

// appliedSince names the thread that reads the relay log.
func appliedSince(t *testing.T, s *mysqltest.Server) string {
	t.Helper()
	var thread string
	row := s.Root(t).QueryRowContext(budget(t), "SELECT COALESCE(THREAD_ID, 0) FROM performance_schema.replication_applier_status_by_coordinator")
	if err := row.Scan(&thread); err != nil || thread == "0" {
		t.Fatalf("thread of the applier: %q, %v", thread, err)
	}
	return thread
}

// TestCloneWhileSitesGetTheirCertificate: from a donor without a certificate into a server that has one, back, and verified once both have.
func TestCloneWhileSitesGetTheirCertificate(t *testing.T) {
	t.Parallel()
	files := &mysql.CloneFiles{CA: mysqltest.CA, Cert: strings.Replace(mysqltest.CA, "ca.crt", "tls.crt", 1), Key: strings.Replace(mysqltest.CA, "ca.crt", "tls.key", 1)}
	for name, tc := range map[string]struct {
		donor, recipient mysqltest.Options
		files            *mysql.CloneFiles
		require, fails   bool
	}{
		"the recipient has one":                            {recipient: mysqltest.Options{TLS: true}, files: &mysql.CloneFiles{}},
		"the donor has one":                                {donor: mysqltest.Options{TLS: true}, files: &mysql.CloneFiles{}},
		"both have, and nobody verifies":                   {donor: mysqltest.Options{TLS: true}, recipient: mysqltest.Options{TLS: true}, files: &mysql.CloneFiles{}},
		"both have, and the donor is verified":             {donor: mysqltest.Options{TLS: true}, recipient: mysqltest.Options{TLS: true}, files: files, require: true},
		"the donor has none, which is why nobody verifies": {recipient: mysqltest.Options{TLS: true}, files: files, require: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			donor, recipient := writable(t, tc.donor), mysqltest.Start(t, tc.recipient)
			from := donorOf(donor)
			from.RequireTLS, from.Files = tc.require, tc.files
			err := recipient.Operator(t).Clone(budget(t), from)
			if (err != nil) != tc.fails {
				t.Fatalf("clone: %v", err)
			}
			if err == nil {
				backAfter(t, recipient, 0)
			}
		})
	}
}

// TestClientsWithoutTLSAreCounted: those of ours are none, and neither is one that uses TLS.
func TestClientsWithoutTLSAreCounted(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	sidecar := s.Sidecar(t)
	count := func(want int, why string) {
		t.Helper()
		mysqltest.Eventually(t, why, func() bool {
			got, err := sidecar.PlainClients(budget(t))
			if err != nil {
				t.Fatal(err)
			}
			return got == want
		})
	}
	count(0, "nobody is connected")
	for i, user := range []struct{ name, password string }{{mysql.AccountOperator, mysqltest.Passwords.Operator}, {mysql.AccountReplication, mysqltest.Passwords.Replication}} {
		conn, err := s.Client(t, user.name, user.password).Conn(budget(t))
		if err != nil {
			t.Fatal(i, err)
		}
		defer func() { _ = conn.Close() }()
	}
	count(0, "accounts of ours are no clients")
	client, err := s.Client(t, "app", "app").Conn(budget(t))
	if err != nil {
		t.Fatal(err)
	}
	count(1, "a client without TLS")
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
}
