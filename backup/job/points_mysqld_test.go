// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// The shortest way through all of it: a failover that loses transactions, and the end of what is archived.
func TestPointInTime(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 1, false, "a", "b")
	h.write("", "CREATE DATABASE d")
	h.some(20)
	h.backup("a", "first", bucket.Logical)
	h.write("d", "CREATE EVENT d.later ON SCHEDULE EVERY 1 DAY DO SELECT 1")
	h.some(20)
	h.cut()
	h.some(5)
	h.fail("b", archive.KindEmergency)
	h.some(30)
	h.archive(true)
	res, db := h.load(1, terms.PointInTime{Latest: true}, false)
	same(t, digests(t, h.sites["b"].Root(t)), digests(t, db))
	if got := gtid.MustParse(executed(t, db)); !got.Equal(h.executed("b")) {
		t.Errorf("executed %s, want %s", got, h.executed("b"))
	}
	last := h.kept()[len(h.kept())-1].id
	if res.ReplayedTo == nil || !res.ReplayedTo.Equal(h.times[last]) || res.Replayed != 51 || res.Backup != "first" {
		t.Errorf("%+v, want the time %s", res, h.times[last])
	}
	// MySQL switches off what it replicates.
	if !slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, "1 events stay disabled") }) {
		t.Errorf("nobody is told of the event: %q", res.Warnings)
	}
	h.clean(1, db)
	ours(t, h.job)
}

// long is a history of three sites with an emergency that loses transactions and leaves a diverged site behind, two planned moves, changes
// of tables, large transactions, tags, a purge and backups, one of which holds what was lost.
func long(t *testing.T, keyring bool, method string, mib int) *history {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	h := newHistory(t, seed, keyring, "a", "b", "c")
	h.write("", "CREATE DATABASE d")
	h.some(30)
	h.backup("a", "first", method)
	h.some(60)
	h.big(mib)
	h.cut()
	h.some(15)
	h.backup("a", "diverged", method)
	h.fail("b", archive.KindEmergency)
	h.some(60)
	h.archive(true)
	h.run("b", "PURGE BINARY LOGS BEFORE NOW(6)")
	h.fail("c", archive.KindPlanned)
	h.some(30)
	h.backup("c", "second", method)
	h.some(30)
	h.fail("b", archive.KindPlanned)
	h.some(40)
	h.archive(true)
	return h
}

// reference has the digests of the history after some of its transactions, made by a server that executes the journal.
func (h *history) reference(after []int, keyring bool) map[int]map[string]string {
	h.t.Helper()
	s := mysqltest.Start(h.t, mysqltest.Options{Keyring: keyring, Config: []string{"super_read_only=OFF", "read_only=OFF", "max_allowed_packet=64M", "innodb_redo_log_capacity=128M"}})
	kept := h.kept()
	out := map[int]map[string]string{}
	slices.Sort(after)
	done := 0
	for _, n := range after {
		var all []string
		for _, e := range kept[done:n] {
			all = append(all, e.sql...)
		}
		s.Exec(h.t, all...)
		done = n
		root := s.Root(h.t)
		out[n] = digests(h.t, root)
		_ = root.Close()
	}
	return out
}

// points are some of each kind, after the first backup.
func (h *history) points(n int) []terms.PointInTime {
	kept := h.kept()
	pick := func() entry { return kept[32+h.rand.IntN(len(kept)-32)] }
	out := []terms.PointInTime{{Latest: true}, {BeforeFailover: 2}, {BeforeFailover: 3}, {BeforeFailover: 4}}
	for i := range n {
		at := h.times[pick().id]
		switch i % 4 {
		case 0:
			out = append(out, terms.PointInTime{Time: &at})
		case 1:
			before := at.Add(-time.Microsecond)
			out = append(out, terms.PointInTime{Time: &before})
		case 2:
			out = append(out, terms.PointInTime{GTID: pick().id})
		default:
			out = append(out, terms.PointInTime{BeforeGTID: pick().id})
		}
	}
	return out
}

// restored restores every point, and compares it with the reference.
func (h *history) restored(points []terms.PointInTime, keyring bool) {
	t := h.t
	t.Helper()
	var after []int
	for _, p := range points {
		after = append(after, h.before(p))
	}
	began := time.Now()
	want := h.reference(slices.Compact(slices.Sorted(slices.Values(after))), keyring)
	left := "no limit"
	if deadline, limited := t.Deadline(); limited {
		left = time.Until(deadline).Round(time.Second).String()
	}
	t.Logf("the reference has %d points after %s; %d points are to be restored, and the tests have %s left", len(want), time.Since(began).Round(time.Second), len(points), left)
	for i, p := range points {
		at := after[i]
		name := strings.NewReplacer("\n", "").Replace(fmt.Sprintf("%+v", p))
		if p.Time != nil {
			name = p.Time.Format(time.RFC3339Nano)
		}
		began := time.Now()
		res, db := h.load(i+1, p, keyring)
		t.Logf("point %d of %d, %s: %d of %d transactions, from %s, %d replayed in %.1f s, all in %s", i+1, len(points), name, at, len(h.kept()), res.Backup, res.Replayed, res.ReplaySeconds, time.Since(began).Round(time.Second/10))
		same(t, want[at], digests(t, db))
		got := gtid.MustParse(executed(t, db))
		for k, e := range h.journal {
			id := gtid.MustParse(e.id)
			wanted := !e.lost && slices.IndexFunc(h.kept(), func(o entry) bool { return o.id == e.id }) < at
			if got.Contains(id) != wanted {
				t.Errorf("%s: transaction %d of the journal (%s, lost %t) is there: %t", name, k, e.id, e.lost, got.Contains(id))
			}
		}
		if reached := gtid.MustParse(res.GTIDExecuted); !reached.Equal(got) {
			t.Errorf("%s: executed %s, and the outcome says %s", name, got, reached)
		}
		if res.Backup == "diverged" {
			t.Errorf("%s: from a backup that holds what was lost", name)
		}
		h.clean(i+1, db)
		h.job.closed()
		_ = os.RemoveAll(filepath.Join(h.job.dir, "volume", fmt.Sprintf("p%d.restored", i+1)))
	}
}

func TestPointsOfAHistory(t *testing.T) {
	h := long(t, false, bucket.Physical, 24)
	h.restored(h.points(6), false)
	h.refusals()
	h.verifications()
}

// verifications go to the end of what is archived, or say why not: a gap is no fault of the backup.
func (h *history) verifications() {
	t, c := h.t, &h.job.config
	t.Helper()
	c.Server.Dir, c.Server.DefaultsFile, c.AccountsDir, c.PointInTime, c.Replay, c.Backup = "/srv/scratch/data", "", "", nil, true, "second"
	last := h.kept()[len(h.kept())-1].id
	if res := h.job.must("verify"); res.ReplayedTo == nil || !res.ReplayedTo.Equal(h.times[last]) || len(res.Warnings) > 0 {
		t.Errorf("%+v, want it to reach %s", res, h.times[last])
	}
	c.Backup = "first"
	if res := h.job.must("verify"); res.ReplayedTo != nil || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "gap") {
		t.Errorf("behind a gap: %+v", res)
	}
	if left, _ := os.ReadDir(filepath.Join(h.job.dir, "scratch", "data")); len(left) > 0 {
		t.Errorf("the verification left %d files", len(left))
	}
}

// A load that was killed in the midst of a replay begins again, and ends where the first try was to end, whatever was archived meanwhile.
func TestAKilledReplayBeginsAgain(t *testing.T) {
	t.Run("in the clear", func(t *testing.T) { killedReplay(t, false, bucket.Physical) })
	t.Run("encrypted", func(t *testing.T) { killedReplay(t, true, bucket.Logical) })
}

func killedReplay(t *testing.T, encrypted bool, method string) {
	h := newHistory(t, 2, encrypted, "a")
	h.write("", "CREATE DATABASE d")
	h.some(10)
	h.backup("a", "first", method)
	h.some(20)
	h.big(16)
	h.archive(true)
	want, until := digests(t, h.sites["a"].Root(t)), h.executed("a")
	h.job.site(encrypted)
	h.job.config.Backup, h.job.config.PointInTime, h.job.config.Server.Dir = "", &terms.PointInTime{Latest: true}, "/srv/volume/data.restored"
	first := h.job.cmd("load")
	var said bytes.Buffer
	first.Stdout, first.Stderr = &said, &said
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the load that is killed said:\n%s", said.Bytes())
		}
	})
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	progress := filepath.Join(h.job.dir, "run", "progress")
	mysqltest.Eventually(t, "it replays", func() bool {
		raw, _ := os.ReadFile(progress)
		return strings.Contains(string(raw), string(terms.Replaying))
	})
	_ = first.Cancel()
	if first.Wait() == nil {
		t.Fatal("it was through before it was killed")
	}
	h.some(20)
	h.archive(true)
	if res := h.job.must("load"); res.Backup != "first" || res.Replayed != 22 {
		t.Errorf("%+v", res)
	}
	db := h.job.opened("/srv/volume/data.restored", encrypted)
	same(t, want, digests(t, db))
	if got := gtid.MustParse(executed(t, db)); !got.Equal(until) {
		t.Errorf("executed %s, want %s", got, until)
	}
	// The volume has its data for that point; for another one it is not taken.
	h.job.closed()
	h.job.config.PointInTime = &terms.PointInTime{GTID: h.kept()[12].id}
	h.job.fails("load", terms.TargetNotEmpty, 14)
}

func TestPointsOfAnEncryptedHistory(t *testing.T) {
	h := long(t, true, bucket.Physical, 24)
	h.restored(h.points(0)[:2], true)
}

// refusals asks for what cannot be reached: all of it is refused before anything is touched.
func (h *history) refusals() {
	t := h.t
	t.Helper()
	early, late := h.times[h.kept()[2].id], time.Now().Add(time.Hour)
	var lost entry
	for _, e := range h.journal {
		if e.lost {
			lost = e
		}
	}
	refused := func(name string, p terms.PointInTime, want terms.Reason, says ...string) {
		t.Helper()
		h.job.config.Backup, h.job.config.PointInTime, h.job.config.Server.Dir = "", &p, "/srv/volume/refused.restored"
		if res := h.job.fails("load", want, 14); !containsAll(res.Message, says...) {
			t.Errorf("%s: %s", name, res.Message)
		}
		if left, _ := os.ReadDir(filepath.Join(h.job.dir, "volume", "refused.restored")); len(left) > 0 {
			t.Errorf("%s: %d files were made", name, len(left))
		}
	}
	refused("before the first backup", terms.PointInTime{Time: &early}, terms.TargetBeforeBackup)
	refused("in the first backup", terms.PointInTime{GTID: h.kept()[2].id}, terms.TargetBeforeBackup)
	refused("later than the archive", terms.PointInTime{Time: &late}, terms.TargetNotArchived)
	refused("a stranger", terms.PointInTime{GTID: "00000000-0000-0000-0000-000000000001:1"}, terms.TargetNotArchived)
	refused("no such epoch", terms.PointInTime{BeforeFailover: 99}, terms.TargetNotArchived)
	refused("lost", terms.PointInTime{GTID: lost.id}, terms.TransactionLost, "epoch 1", "epoch 2", "kubectl mfg backup lost")
	refused("before what was lost", terms.PointInTime{BeforeGTID: lost.id}, terms.TransactionLost)
	h.gap(refused)
}

// gap removes a file of epoch 2 from the archive: what it held is named, and what lies in it or behind it is refused.
func (h *history) gap(refused func(string, terms.PointInTime, terms.Reason, ...string)) {
	t := h.t
	t.Helper()
	a := h.store()
	l, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var middle archive.Log
	for _, log := range l.Logs {
		if log.Epoch == 2 && log.Transactions > 2 && log.Set.Intersect(h.opened[2]).IsEmpty() {
			middle = log
			break
		}
	}
	if middle.Log == "" {
		t.Fatal("no file of epoch 2 is whole")
	}
	if err := a.Remove(t.Context(), middle); err != nil {
		t.Fatal(err)
	}
	within := middle.First().Add(middle.Last().Sub(middle.First()) / 2)
	inside := ""
	for _, e := range h.kept() {
		if middle.Set.Contains(gtid.MustParse(e.id)) {
			inside = e.id
		}
	}
	refused("a time in a gap", terms.PointInTime{Time: &within}, terms.TargetInGap, middle.Set.String())
	refused("a transaction in a gap", terms.PointInTime{GTID: inside}, terms.TargetInGap, middle.Set.String())
	refused("behind a gap", terms.PointInTime{BeforeFailover: 3}, terms.TargetInGap, middle.Set.String())
	// What is behind the gap, with a backup that was made after it, is not.
	if res, _ := h.load(99, terms.PointInTime{Latest: true}, false); res.Backup != "second" {
		t.Errorf("%+v", res)
	}
	h.job.closed()
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
