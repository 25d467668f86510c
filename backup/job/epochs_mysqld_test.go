// SPDX-License-Identifier: Apache-2.0

//go:build mysqld && long

package job_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// number is one of the environment, such as POINTS=30, or what it is without.
func number(t *testing.T, name string, without int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return without
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: give a number above 0", name, text)
	}
	return n
}

// Points of a history of many epochs, each restored and compared with a server that executes the journal. Every third change of the role is an
// emergency that loses transactions; the site that it leaves behind, diverged, is cloned from the new active site, becomes active again later as
// another server, and diverges again. There are changes of tables, tags, purges, and a transaction of MIB megabytes. `make test-points` sets
// POINTS, EPOCHS and MIB as high as the issue of points in time asks for.
func TestPointsOfManyFailovers(t *testing.T) {
	points, epochs, mib := number(t, "POINTS", 6), number(t, "EPOCHS", 4), number(t, "MIB", 24)
	began := time.Now()
	h := manyFailovers(t, int64(epochs), mib)
	lost := 0
	for _, e := range h.journal {
		if e.lost {
			lost++
		}
	}
	if lost == 0 || len(h.opened) != epochs {
		t.Fatalf("%d transactions were lost in %d epochs: the history is not what is to be tested", lost, len(h.opened))
	}
	t.Logf("a history of %d epochs, %d transactions and %d that were lost after %s", epochs, len(h.kept()), lost, time.Since(began).Round(time.Second))
	h.restored(h.manyPoints(points), false)
	h.lostIsRefused()
}

// manyFailovers makes the history.
func manyFailovers(t *testing.T, epochs int64, mib int) *history {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d epochs, %d MiB", seed, epochs, mib)
	h := newHistory(t, seed, false, "a", "b", "c")
	h.write("", "CREATE DATABASE d")
	h.some(30)
	h.backup("a", "first", bucket.Physical)
	sites := []string{"a", "b", "c"}
	for {
		h.some(35)
		switch h.epoch {
		case 3:
			h.big(mib)
		case 5:
			h.write("", fmt.Sprintf("DROP TABLE d.big%d", mib)) // or it would take most of the time from now on
		}
		if h.epoch%3 == 1 && h.epoch > 1 {
			h.backup(h.active, fmt.Sprintf("epoch-%d", h.epoch), bucket.Physical)
			h.some(15)
		}
		if h.epoch == epochs {
			h.archive(true)
			return h
		}
		h.change(sites[h.epoch%3])
		t.Logf("epoch %d begins on %s after %d transactions", h.epoch, h.active, len(h.kept()))
	}
}

// change makes another site active: with losses after the first epoch of each three, and after a purge otherwise.
func (h *history) change(to string) {
	h.t.Helper()
	if h.epoch%3 != 1 {
		h.archive(true)
		h.run(h.active, "PURGE BINARY LOGS BEFORE NOW(6)")
		h.fail(to, archive.KindPlanned)
		return
	}
	old, server := h.active, h.sites[h.active]
	h.cut()
	h.some(12)
	if h.epoch == 1 {
		h.backup(old, "diverged", bucket.Physical)
	}
	h.fail(to, archive.KindEmergency)
	h.some(10)
	h.reclone(old, server)
}

// reclone gives a diverged site the data of the active one. As in the pods, it is another server afterwards (decision 0014).
func (h *history) reclone(name string, s *mysqltest.Server) {
	t := h.t
	t.Helper()
	donor, was := h.sites[h.active], h.uuids[name]
	h.run(h.active, "SET SESSION sql_log_bin = 0", "GRANT BACKUP_ADMIN ON *.* TO mfg_r@'%'", "SET SESSION sql_log_bin = 1")
	h.run(name, fmt.Sprintf("SET GLOBAL clone_valid_donor_list = '127.0.0.1:%d'", donor.Port), "SET GLOBAL super_read_only = OFF")
	exits := len(s.Exits())
	statement := fmt.Sprintf("CLONE INSTANCE FROM mfg_r@'127.0.0.1':%d IDENTIFIED BY 'r'", donor.Port)
	_, said := h.conns[name].ExecContext(t.Context(), statement) // its connection ends with the server
	_ = h.conns[name].Close()
	mysqltest.Eventually(t, fmt.Sprintf("the clone to end (%v)", said), func() bool { return len(s.Exits()) > exits })
	root := s.Root(t)
	mysqltest.Eventually(t, "the cloned server answers", func() bool { return root.PingContext(context.Background()) == nil })
	conn, err := root.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	h.conns[name], h.sites[name] = conn, s
	h.uuids[name] = h.ask(name, "SELECT @@server_uuid")
	if state := h.ask(name, "SELECT STATE FROM performance_schema.clone_status"); state != "Completed" || h.uuids[name] == was {
		t.Fatalf("the clone of %s is %s (%v), and its server %s was %s", name, state, said, h.uuids[name], was)
	}
	h.follow()
	h.caughtUp(name)
}

// manyPoints are so many: the end, the beginnings of epochs as far as a third of them goes, and random ones of each kind.
func (h *history) manyPoints(n int) []terms.PointInTime {
	out := []terms.PointInTime{{Latest: true}}
	for epoch := h.epoch; epoch > 1 && len(out) < max(2, n/3); epoch-- {
		out = append(out, terms.PointInTime{BeforeFailover: epoch})
	}
	if random := h.points(max(0, n-len(out))); len(random) > fixedPoints {
		out = append(out, random[fixedPoints:]...)
	}
	return out
}

// fixedPoints is how many of points are not random.
const fixedPoints = 4

// lostIsRefused asks for one transaction of each failover that lost some: each is refused, with the epoch that it belonged to.
func (h *history) lostIsRefused() {
	t := h.t
	t.Helper()
	var asked []int64
	for _, e := range h.journal {
		if !e.lost || slices.Contains(asked, e.epoch) {
			continue
		}
		asked = append(asked, e.epoch)
		h.job.config.Backup, h.job.config.PointInTime, h.job.config.Server.Dir = "", &terms.PointInTime{GTID: e.id}, "/srv/volume/refused.restored"
		if res := h.job.fails("load", terms.TransactionLost, 14); !containsAll(res.Message, fmt.Sprintf("epoch %d", e.epoch), fmt.Sprintf("epoch %d", e.epoch+1)) {
			t.Errorf("a transaction that was lost in epoch %d: %s", e.epoch, res.Message)
		}
	}
}
