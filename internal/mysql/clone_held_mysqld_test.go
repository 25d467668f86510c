// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// A clone drops the recipient's tables first, and waits for everybody who holds one: a prepared XA transaction holds its own for
// good, with nobody connected (seen on the lab: a diverged site was "Cloning" until somebody looked), and so does the idle
// transaction of an administrator, whom offline_mode does not keep out.
func TestACloneWaitsForNobodyWhoHoldsATable(t *testing.T) {
	donor, recipient := writable(t, mysqltest.Options{TLS: true}), writable(t, mysqltest.Options{TLS: true})
	// Names as applications choose them: one with a quote, one with bytes that are no text and without a second part.
	for _, xid := range []string{"'shop','it''s',7", "X'00FF'"} {
		session(t, recipient.Client(t, app, app), "XA START "+xid, insert, "XA END "+xid, "XA PREPARE "+xid)
	}
	session(t, recipient.Client(t, admin, admin), "START TRANSACTION", "SELECT * FROM app.t")
	db := recipient.Operator(t)
	if n, err := db.PreparedXA(budget(t)); err != nil || n != 2 {
		t.Fatalf("%d prepared transactions, %v", n, err)
	}
	recipient.Exec(t, "SET GLOBAL super_read_only = ON")
	if err := db.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.Clone(budget(t), donorOf(donor)); err != nil {
		t.Fatal(err)
	}
	backAfter(t, recipient, 0)
	if clone, err := db.CloneStatus(budget(t)); err != nil || clone.State != "Completed" {
		t.Errorf("after the clone: %+v, %v", clone, err)
	}
}
