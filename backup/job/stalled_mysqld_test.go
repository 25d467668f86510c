// SPDX-License-Identifier: Apache-2.0

//go:build mysqld && long

package job_test

import (
	"syscall"
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// A site that answers nothing any more, and a server here that takes nothing any more, are given up, each with the word for it. What was loaded
// by then opens nowhere.
func TestStalled(t *testing.T) {
	s := origin(t, mysqltest.Options{})
	fill(t, s, 60)
	j := newJob(t, false).from(s)
	j.config.IdleTimeoutSeconds = 5
	_, wait, _ := j.begun("make", terms.Dumping)
	s.Signal(t, syscall.SIGSTOP)
	res, code := wait()
	s.Signal(t, syscall.SIGCONT)
	if res.Reason != terms.Stalled || code != terms.ExitSource {
		t.Errorf("a dump of a site that stands still: code %d: %+v", code, res)
	}
	if names, others := j.backups(); len(names)+others > 0 {
		t.Errorf("left: %v and %d objects", names, others)
	}
	mysqltest.Eventually(t, "the site has no session of ours", func() bool {
		var n int
		return s.Root(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE user = 'mfg_backup'").Scan(&n) == nil && n == 0
	})

	j.must("make")
	j.site(false)
	_, wait, _ = j.begun("load", terms.Loading)
	pids, _ := processes(t, "--socket=/srv/run/load.sock")
	if len(pids) == 0 {
		t.Fatal("no mysqld loads")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if res, code := wait(); res.Reason != terms.Stalled || code != terms.ExitSource {
		t.Errorf("a load into a server that stands still: code %d: %+v", code, res)
	}
	j.must("load") // and begun again from nothing
}

// A server that is at work for longer than that on one statement is not given up: all of the dump is in its hands, and no byte goes on.
func TestAStatementThatWorksIsNotStalled(t *testing.T) {
	s := origin(t, mysqltest.Options{})
	s.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (c VARCHAR(10) PRIMARY KEY, g VARCHAR(128) AS (SHA2(REPEAT(c, 400000), 512)) STORED)",
		"INSERT INTO d.t (c) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT LPAD(i, 10, 'x') FROM n")
	j := newJob(t, false).from(s)
	j.must("make")
	j.site(false)
	j.config.IdleTimeoutSeconds = 3
	j.must("load")
}
