// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

func donorOf(s *mysqltest.Server) mysql.Donor {
	return mysql.Donor{Host: "127.0.0.1", Port: s.Port, User: mysql.AccountClone, Password: mysqltest.Passwords.Clone, RequireTLS: true}
}

// backAfter waits until mysqld has ended once more than before and answers again.
func backAfter(t *testing.T, s *mysqltest.Server, exits int) {
	t.Helper()
	mysqltest.Eventually(t, "mysqld ends", func() bool { return len(s.Exits()) > exits })
	s.WaitReady(t)
}

func TestCloneOverTLS(t *testing.T) {
	t.Parallel()
	donor, recipient := writable(t, mysqltest.Options{TLS: true}), mysqltest.Start(t, mysqltest.Options{TLS: true})
	db := recipient.Operator(t)
	if st, err := db.CloneStatus(budget(t)); err != nil || st.State != "" {
		t.Errorf("before any clone: %+v, %v", st, err)
	}
	before := status(t, db)
	if err := db.Clone(budget(t), donorOf(donor)); err != nil {
		t.Fatal(err)
	}
	backAfter(t, recipient, 0)
	if exits := recipient.Exits(); !slices.Equal(exits, []int{16}) {
		t.Errorf("mysqld as process 1 must end with 16 to be restarted, got %v", exits)
	}
	clone, err := db.CloneStatus(budget(t))
	if err != nil || clone.State != "Completed" || clone.ErrorNo != 0 || len(clone.Stages) != 7 || clone.Source == "" {
		t.Errorf("after the clone: %+v, %v", clone, err)
	}
	if age := time.Since(clone.BeganAt); age < 0 || age > 5*time.Minute {
		t.Errorf("the clone began at %s by the server's clock, %s ago", clone.BeganAt, age)
	}
	for _, stage := range clone.Stages {
		if stage.State != "Completed" {
			t.Errorf("stage %+v", stage)
		}
	}
	st, want := status(t, db), status(t, donor.Operator(t))
	if !st.Executed.Equal(want.Executed) || st.ServerUUID != before.ServerUUID || st.HasDatabases != want.HasDatabases || st.Cloning || st.HalfCloned {
		t.Errorf("the copy must hold the donor's transactions under its own identity: %+v", st)
	}
	if !st.SuperReadOnly || st.Channels != 0 {
		t.Errorf("the copy must start fenced: %+v", st)
	}

	// It can follow at once, and becomes whole.
	src := sourceOf(donor)
	src.TLS, src.CA = true, mysqltest.CA
	if err := db.Follow(budget(t), src); err != nil {
		t.Fatal(err)
	}
	donor.Exec(t, insert)
	catchUp(t, donor, recipient)

	// A second time it holds databases: only a window lets it.
	if err := db.DropReplication(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.Clone(budget(t), donorOf(donor)); serverNumber(err) != 1290 || errors.Is(err, mysql.ErrCloneOutcomeUnknown) {
		t.Errorf("outside a window the server must refuse with 1290, got %v", err)
	}
	if st := status(t, db); !st.HasDatabases {
		t.Errorf("a refused clone must lose nothing: %+v", st)
	}
	if err := db.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.Clone(budget(t), donorOf(donor)); err != nil {
		t.Fatal(err)
	}
	backAfter(t, recipient, 1)
	if st := status(t, db); !st.SuperReadOnly || st.OfflineMode {
		t.Errorf("the restart ends the window: %+v", st)
	}
}

// TestStatusWhileCloning: whoever watches a site must go on seeing it while its data is replaced.
func TestStatusWhileCloning(t *testing.T) {
	donor, recipient := writable(t, mysqltest.Options{}), writable(t, mysqltest.Options{})
	db := recipient.Operator(t)
	fence(t, recipient.Sidecar(t), mysql.StageReadOnly)
	if err := db.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	// About 60 MB in MB/s.
	recipient.Exec(t, "SET GLOBAL clone_max_network_bandwidth = 15", "SET GLOBAL clone_autotune_concurrency = OFF", "SET GLOBAL clone_max_concurrency = 1")
	done := make(chan error, 1)
	go func() { done <- db.Clone(context.WithoutCancel(t.Context()), donorOf(donor)) }()
	var slowest time.Duration
	var asked, cloning, staged int
	sidecar := recipient.Sidecar(t)
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
			start := time.Now()
			st, err := sidecar.Status(t.Context())
			if err != nil {
				t.Logf("after %d answers: %v", asked, err)
				time.Sleep(20 * time.Millisecond)
				continue
			}
			asked++
			slowest = max(slowest, time.Since(start))
			if st.Cloning {
				cloning++
			}
			if progress, err := db.CloneStatus(t.Context()); err == nil && len(progress.Stages) > 0 {
				staged++
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	t.Logf("%d answers, %d while cloning, %d with progress, the slowest took %s", asked, cloning, staged, slowest.Round(time.Millisecond))
	// How many looks fit into a clone depends on the machine; that none was refused or hung does not.
	if cloning == 0 || staged == 0 || slowest > 2*time.Second {
		t.Errorf("the status was not to be had during the clone")
	}
	backAfter(t, recipient, 0)
}

func TestCloneRefused(t *testing.T) {
	donor, recipient := writable(t, mysqltest.Options{}), mysqltest.Start(t, mysqltest.Options{})
	db := recipient.Operator(t)
	wrong := donorOf(donor)
	wrong.Password = "geheimnis"
	err := db.Clone(budget(t), wrong)
	if err == nil || errors.Is(err, mysql.ErrCloneOutcomeUnknown) {
		t.Errorf("a refused donor account is a plain error, got %v", err)
	}
	t.Log(err)
	clone, err := db.CloneStatus(budget(t))
	if err != nil || clone.State == "Completed" {
		t.Errorf("after the refusal: %+v, %v", clone, err)
	}
	if len(recipient.Exits()) != 0 {
		t.Error("a clone that never began must not restart the server")
	}
}

func TestCloneCutOff(t *testing.T) {
	donor, recipient := writable(t, mysqltest.Options{}), mysqltest.Start(t, mysqltest.Options{})
	db := recipient.Operator(t)
	// A donor that stands still keeps the clone from ending.
	donor.Exec(t, "SET GLOBAL clone_max_concurrency = 1")
	donor.Signal(t, syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := db.Clone(ctx, donorOf(donor))
	donor.Signal(t, syscall.SIGCONT)
	if !errors.Is(err, mysql.ErrCloneOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after a lost connection nothing is known, got %v", err)
	}
}

func TestWithoutClonePlugin(t *testing.T) {
	db := mysqltest.Start(t, mysqltest.Options{NoClonePlugin: true}).Operator(t)
	for range 2 {
		if st := status(t, db); st.ServerUUID == "" || !st.SuperReadOnly {
			t.Errorf("an image without the plugin must not blind the status: %+v", st)
		}
	}
	if err := db.Clone(budget(t), mysql.Donor{Host: "127.0.0.1", Port: 1, User: "u"}); err == nil || errors.Is(err, mysql.ErrCloneOutcomeUnknown) {
		t.Errorf("want a plain error, got %v", err)
	}
}

// I14: a server that accepts writes is not cloned into, whatever was decided before.
func TestI14NoCloneIntoAWritableServer(t *testing.T) {
	donor, recipient := writable(t, mysqltest.Options{}), writable(t, mysqltest.Options{})
	from := donorOf(donor)
	from.RequireTLS = false
	before := status(t, recipient.Operator(t))
	if err := recipient.Operator(t).Clone(budget(t), from); !errors.Is(err, mysql.ErrWritable) {
		t.Errorf("cloned: %v", err)
	}
	if now := status(t, recipient.Operator(t)); !now.Writable() || !now.Executed.Equal(before.Executed) || len(recipient.Exits()) != 0 {
		t.Errorf("it was touched: %+v", now)
	}
}
