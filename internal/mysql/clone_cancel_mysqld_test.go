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

// A clone can be cancelled while it copies; the server stays up, fenced, and takes another one. On a busy machine mysqld hangs
// over it now and then, and has to be ended.
func TestCancelClone(t *testing.T) {
	t.Parallel()
	donor, recipient := bulky(t), mysqltest.Start(t, mysqltest.Options{})
	db := recipient.Operator(t)
	if err := db.CancelClone(budget(t)); err != nil {
		t.Errorf("without a clone: %v", err)
	}
	from := donorOf(donor)
	from.RequireTLS = false
	recipient.Exec(t, "SET GLOBAL clone_autotune_concurrency = OFF", "SET GLOBAL clone_max_concurrency = 1", "SET GLOBAL clone_max_data_bandwidth = 1")
	result := make(chan error, 1)
	go func() { result <- db.Clone(budget(t), from) }()
	second := recipient.Operator(t)
	awaitCopying(t, second)
	if err := second.CancelClone(budget(t)); errors.Is(err, mysql.ErrCloneHangs) {
		t.Log("mysqld hangs over the KILL")
		endInClone(t, recipient, db, result)
	} else if err != nil {
		t.Fatal(err)
	} else {
		checkCancelled(t, recipient, second, <-result)
	}

	recipient.Exec(t, "SET GLOBAL clone_max_data_bandwidth = 0")
	cloneAgain(t, recipient, donor)
}

// A clone during which mysqld ends, with its node or its pod, has failed, and the site can be cloned again.
func TestCloneEndedByACrash(t *testing.T) {
	t.Parallel()
	donor, recipient := bulky(t), mysqltest.Start(t, mysqltest.Options{})
	db := recipient.Operator(t)
	from := donorOf(donor)
	from.RequireTLS = false
	result := make(chan error, 1)
	go func() { result <- db.Clone(budget(t), from) }()
	awaitCopying(t, recipient.Operator(t))
	endInClone(t, recipient, db, result)
	cloneAgain(t, recipient, donor)
}

// donorIsBusy is ER_CLONE_TOO_MANY_CONCURRENT_CLONES of the donor, as the recipient tells it.
const donorIsBusy = "Clone Donor Error: 3634"

// cloneAgain clones a recipient whose last clone failed: it holds what the donor has then.
func cloneAgain(t *testing.T, recipient, donor *mysqltest.Server) {
	t.Helper()
	db, from, exits := recipient.Operator(t), donorOf(donor), len(recipient.Exits())
	from.RequireTLS = false
	// A donor serves one clone at a time, and ends a failed one only when it notices: it refuses the next until then, as it
	// does the operator, which asks again.
	var err error
	mysqltest.Eventually(t, "the donor is rid of the last clone", func() bool {
		err = db.Clone(budget(t), from)
		return err == nil || !strings.Contains(err.Error(), donorIsBusy)
	})
	if err != nil {
		t.Fatal(err)
	}
	backAfter(t, recipient, exits)
	if got, want := status(t, db), status(t, donor.Operator(t)); !got.Executed.Equal(want.Executed) || got.HalfCloned {
		t.Errorf("it holds %s (half cloned: %t), the donor %s", got.Executed, got.HalfCloned, want.Executed)
	}
}

// bulky is a donor with so much to copy that it can be seen under way on a fast machine too: the limit of the bandwidth bites
// late.
func bulky(t *testing.T) *mysqltest.Server {
	t.Helper()
	donor := writable(t, mysqltest.Options{})
	donor.Exec(t, "CREATE DATABASE bulk", "CREATE TABLE bulk.rows_of_it (id INT AUTO_INCREMENT PRIMARY KEY, filler LONGBLOB)",
		"INSERT INTO bulk.rows_of_it (filler) VALUES (REPEAT('x', 4 << 20)), (REPEAT('y', 4 << 20)), (REPEAT('z', 4 << 20)), (REPEAT('w', 4 << 20))")
	for range 3 {
		donor.Exec(t, "INSERT INTO bulk.rows_of_it (filler) SELECT filler FROM bulk.rows_of_it")
	}
	return donor
}

func awaitCopying(t *testing.T, db *mysql.DB) {
	t.Helper()
	mysqltest.Eventually(t, "the clone copies files", func() bool {
		st, err := db.CloneStatus(budget(t))
		if err != nil {
			return false
		}
		for _, stage := range st.Stages {
			if stage.Stage == "FILE COPY" && stage.State == "In Progress" {
				return st.State == "In Progress"
			}
		}
		return false
	})
}

// checkCancelled is what is left of a clone that was cancelled, whose statement ended in err.
func checkCancelled(t *testing.T, recipient *mysqltest.Server, db *mysql.DB, err error) {
	t.Helper()
	if err == nil || errors.Is(err, mysql.ErrCloneOutcomeUnknown) {
		t.Errorf("the cancelled statement: %v", err)
	}
	st, err := db.CloneStatus(budget(t))
	if err != nil || st.State != "Failed" || st.ErrorNo == 0 {
		t.Errorf("clone status %+v, %v", st, err)
	}
	if seen := status(t, db); !seen.SuperReadOnly || seen.Cloning || !seen.HalfCloned || len(recipient.Exits()) != 0 {
		t.Errorf("the server must stay up, fenced: %+v, exits %v", seen, recipient.Exits())
	}
}

// endInClone ends a server in the middle of a clone, as the operator does by ending its pod: the clone counts as failed then.
func endInClone(t *testing.T, recipient *mysqltest.Server, db *mysql.DB, result <-chan error) {
	t.Helper()
	recipient.Kill(t, func() {})
	if err := <-result; !errors.Is(err, mysql.ErrCloneOutcomeUnknown) {
		t.Errorf("the statement of a server that has ended: %v", err)
	}
	st, err := db.CloneStatus(budget(t))
	if err != nil || st.State != "Failed" {
		t.Errorf("clone status %+v, %v", st, err)
	}
	if seen := status(t, db); !seen.SuperReadOnly || seen.Cloning || !seen.HalfCloned {
		t.Errorf("the server must be back, fenced: %+v", seen)
	}
}

// An attached replica with databases can be cloned again: replication is dropped first, a window lets it.
func TestCloneAttachedReplica(t *testing.T) {
	t.Parallel()
	donor, recipient := writable(t, mysqltest.Options{}), mysqltest.Start(t, mysqltest.Options{})
	db := recipient.Operator(t)
	if err := db.Follow(budget(t), sourceOf(donor)); err != nil {
		t.Fatal(err)
	}
	donor.Exec(t, insert)
	catchUp(t, donor, recipient)
	from := donorOf(donor)
	from.RequireTLS = false
	if err := db.DropReplication(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.Clone(budget(t), from); err != nil {
		t.Fatal(err)
	}
	backAfter(t, recipient, 0)
	if got, want := status(t, db), status(t, donor.Operator(t)); !got.Executed.Equal(want.Executed) || got.Channels != 0 || !got.SuperReadOnly {
		t.Errorf("it must hold what the donor has (%s), fenced and detached: %+v", want.Executed, got)
	}
	if err := db.Follow(budget(t), sourceOf(donor)); err != nil {
		t.Fatal(err)
	}
	donor.Exec(t, insert)
	catchUp(t, donor, recipient)
}
