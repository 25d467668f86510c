// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package archiver

import (
	"crypto/ed25519"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

const makeTable = "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)"

// complete fails unless the archive is the server's history, without a gap.
func complete(t *testing.T, g *group, s *mysqltest.Server, l archive.Listing) {
	t.Helper()
	p := archive.History(l)
	if want := executed(t, s); len(p.Gaps) > 0 || !p.Archived.Union(p.Base).Contains(want) || !p.Lost.IsEmpty() {
		t.Errorf("gaps %v, archived %s, lost %s, executed %s", p.Gaps, p.Archived, p.Lost, want)
	}
	if _, err := archive.Plan(p, p.Base, archive.Target{Latest: true}); err != nil {
		t.Error(err)
	}
}

// A transaction of 256 MB needs no more memory than a small one, and killing the archiver in the middle of it loses nothing.
func TestALargeTransactionAndAKilledArchiver(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	s.Exec(t, "CREATE DATABASE d", makeTable)
	statements := []string{"BEGIN", "INSERT INTO d.t (v) SELECT REPEAT(HEX(RANDOM_BYTES(1024)), 512)"}
	for range 8 {
		statements = append(statements, "INSERT INTO d.t (v) SELECT v FROM d.t")
	}
	s.Exec(t, append(statements, "COMMIT")...)
	slow := g.process("a", s, 20<<20)
	var partial string
	mysqltest.Eventually(t, "the upload is under way", func() bool {
		_ = filepath.WalkDir(filepath.Join(g.dir, "bucket", "shop", "orders", "archive", "binlogs"), func(path string, d fs.DirEntry, err error) error {
			// What is written has another name until it is whole.
			if info, statErr := os.Stat(path); err == nil && statErr == nil && !d.IsDir() && info.Size() > 0 && !whole.MatchString(path) {
				partial = path
			}
			return nil
		})
		return partial != ""
	})
	if err := slow.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = slow.Wait()
	for _, f := range g.list().Logs {
		if f.To-f.From > 1<<20 {
			t.Fatalf("half an upload counts: %s", f.Name())
		}
	}
	next := g.process("a", s, rateMax)
	l := g.archived("a")
	complete(t, g, s, l)
	peak := peakMemory(t, next.Process.Pid)
	t.Logf("%d MiB of binary log, peak of the archiver %d MiB", logBytes(l)>>20, peak>>20)
	if peak > 160<<20 || logBytes(l) < 250<<20 {
		t.Errorf("peak %d MiB", peak>>20)
	}
}

func logBytes(l archive.Listing) (sum int64) {
	for _, f := range l.Logs {
		sum += f.To - f.From
	}
	return sum
}

var whole = regexp.MustCompile(`\.json$|-[0-9a-f]{16}$`)

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := highWater.FindSubmatch(raw)
	if m == nil {
		t.Fatal("no peak")
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// Logs are sealed and mysqld is killed while clients write; the archiver is stopped and started again. Nothing is missing, and every log is
// what the server has.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	s.Exec(t, "CREATE DATABASE d", makeTable)
	stop := g.run("a", s)
	load := func() {
		var writers sync.WaitGroup
		until := time.Now().Add(5 * time.Second)
		db := s.Root(t)
		do := func(statement string) {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Error(err)
			}
		}
		for range 4 {
			writers.Go(func() {
				for time.Now().Before(until) && !t.Failed() {
					do("INSERT INTO d.t (v) VALUES (REPEAT('y', 2000))")
				}
			})
		}
		for time.Now().Before(until) {
			do("FLUSH BINARY LOGS")
			time.Sleep(300 * time.Millisecond)
		}
		writers.Wait()
	}
	load()
	stop()
	load()
	g.run("a", s)
	s.Kill(t, func() {})
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF", "INSERT INTO d.t (v) VALUES ('after the crash')")
	l := g.archived("a")
	complete(t, g, s, l)
	g.until("a", "all segments are one file", func(wire.ArchiverStatus) bool {
		l = g.list()
		segments := map[string]bool{}
		for _, f := range l.Logs {
			if !f.Sealed {
				segments[f.Log] = true
			}
		}
		return len(segments) <= 1 && l.Replaced.Files == 0
	})
	l = g.list()
	complete(t, g, s, l)
	for _, log := range logs(t, s) {
		if archive.Number(log) >= archive.Number(l.Logs[0].Log) {
			compare(t, g, s, l, log)
		}
	}
}

// What was purged before it was archived is named exactly, and a target behind it is refused.
func TestPurgedLogsAreAGap(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	s.Exec(t, "CREATE DATABASE d", makeTable, "INSERT INTO d.t (v) VALUES ('one')")
	stop := g.run("a", s)
	g.archived("a")
	stop()
	before := executed(t, s)
	s.Exec(t, "FLUSH BINARY LOGS", "INSERT INTO d.t (v) VALUES ('lost')", "INSERT INTO d.t (v) VALUES ('lost too')")
	missing := executed(t, s).Subtract(before)
	s.Exec(t, "FLUSH BINARY LOGS")
	all := logs(t, s)
	s.Exec(t, "PURGE BINARY LOGS TO '"+all[len(all)-1]+"'", "INSERT INTO d.t (v) VALUES ('after')")
	g.run("a", s)
	l := g.archived("a")
	p := archive.History(l)
	st := g.status("a")
	if len(p.Gaps) != 1 || !p.Gaps[0].GTIDs.Equal(missing) || st.GapCount != 1 || st.Gaps[0].GTIDs != missing.String() || st.Gaps[0].Transactions != 2 ||
		!st.Gaps[0].After.Before(st.Gaps[0].Before) || st.State != wire.ArchiverArchiving {
		t.Fatalf("gaps %v, want %s; status %+v", p.Gaps, missing, st)
	}
	if _, err := archive.Plan(p, p.Base, archive.Target{Latest: true}); archive.RefusalOf(err) == nil || archive.RefusalOf(err).Gap == nil {
		t.Errorf("behind the gap: %v", err)
	}
}

// The storage is away for a while. It says so, and goes on without a gap.
func TestAStorageThatIsAway(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	s.Exec(t, "CREATE DATABASE d", makeTable)
	folder, away := filepath.Join(g.dir, "bucket"), filepath.Join(g.dir, "away")
	// What opens the storage comes later than the archiver.
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	g.run("a", s)
	g.until("a", "it says that there is no storage", func(st wire.ArchiverStatus) bool { return st.Reason == string(bucket.NoSuchBucket) })
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	g.archived("a")
	if err := os.Rename(folder, away); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "INSERT INTO d.t (v) VALUES ('one')", "FLUSH BINARY LOGS", "INSERT INTO d.t (v) VALUES ('two')")
	st := g.until("a", "it says that the storage is away", func(st wire.ArchiverStatus) bool { return st.State == wire.ArchiverFailing })
	if st.Reason == "" || st.Message == "" || st.FailingSince.IsZero() {
		t.Errorf("%+v", st)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, folder); err != nil {
		t.Fatal(err)
	}
	l := g.archived("a")
	complete(t, g, s, l)
	if st := g.status("a"); st.State != wire.ArchiverArchiving || !st.FailingSince.IsZero() {
		t.Errorf("%+v", st)
	}
}

// I26: a failover loses what the old site had acknowledged and archived. The archive knows, and no recovery applies it.
func TestTwoEpochsAndWhatWasLost(t *testing.T) {
	t.Parallel()
	a, b := newServer(t, mysqltest.Options{}), newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", a)
	uuid := text(t, a, "SELECT @@server_uuid")
	for i := range 5 {
		statement := fmt.Sprintf("CREATE DATABASE d%d", i+1)
		a.Exec(t, statement)
		if i < 3 {
			b.Exec(t, fmt.Sprintf("SET gtid_next = '%s:%d'", uuid, i+1), statement, "SET gtid_next = 'AUTOMATIC'")
		}
	}
	stop := g.run("a", a)
	g.run("b", b)
	g.archived("a")
	g.opened(2, "b", b)
	b.Exec(t, "CREATE DATABASE e1", "CREATE DATABASE e2")
	l := g.archived("b")
	g.until("a", "the old site stands by", func(st wire.ArchiverStatus) bool { return st.State == wire.ArchiverStandby && st.Epoch == 0 })
	stop()
	p := archive.History(l)
	lost := gtid.MustParse(uuid + ":4-5")
	if !p.Lost.Equal(lost) || !p.Archived.Equal(executed(t, b)) || len(p.Gaps) > 0 || len(p.Epochs) != 2 || !p.Epochs[0].Lost.Equal(lost) {
		t.Fatalf("lost %s, archived %s, gaps %v, epochs %+v", p.Lost, p.Archived, p.Gaps, p.Epochs)
	}
	r, err := archive.Plan(p, gtid.Set{}, archive.Target{Latest: true})
	if err != nil || !r.Reaches.Equal(executed(t, b)) {
		t.Errorf("%v: %v", r, err)
	}
	for _, step := range r.Steps {
		if !step.Apply.Intersect(lost).IsEmpty() {
			t.Errorf("%s applies what was lost", step.Name())
		}
	}
}

// I26: what was read does not count if it is another site's turn before it is all there.
func TestNothingCountsThatIsReadWhenTheTurnIsOver(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	s.Exec(t, "CREATE DATABASE d")
	g.activeFor = 1
	g.run("a", s)
	g.until("a", "it stands by", func(st wire.ArchiverStatus) bool { return st.State == wire.ArchiverStandby })
	if l := g.list(); len(l.Logs) > 0 || len(l.Epochs) != 1 {
		t.Errorf("%+v", l)
	}
	// A server that takes no writes is not archived, whatever the sidecar says.
	s.Exec(t, "SET GLOBAL super_read_only = ON")
	g.mu.Lock()
	g.activeFor = -1
	g.mu.Unlock()
	time.Sleep(2 * time.Second)
	if l := g.list(); len(l.Logs) > 0 {
		t.Errorf("%+v", l.Logs)
	}
}

// I27: the archiver prunes on the operator's word, and what a retained backup needs stays.
func TestPruningByTheOldestBackup(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	s.Exec(t, "CREATE DATABASE d1", "FLUSH BINARY LOGS", "CREATE DATABASE d2", "FLUSH BINARY LOGS")
	g.run("a", s)
	g.archived("a")
	all := len(g.list().Logs)
	backup := executed(t, s)
	s.Exec(t, "CREATE DATABASE d3", "FLUSH BINARY LOGS", "CREATE DATABASE d4")
	g.archived("a")
	now := time.Now()
	g.mu.Lock()
	g.cutoff.Cutoff, g.cutoff.Backup, g.cutoff.GTIDExecuted = &now, "monday", backup.String()
	g.mu.Unlock()
	g.until("a", "what is old is pruned", func(st wire.ArchiverStatus) bool { return st.Pruned >= 2 })
	l := g.archived("a")
	p := archive.History(l)
	r, err := archive.Plan(p, backup, archive.Target{Latest: true})
	if err != nil || !r.Reaches.Equal(executed(t, s)) || len(p.Gaps) > 0 || l.Pruned == nil || all < 2 {
		t.Errorf("%+v: %v; gaps %v", r, err, p.Gaps)
	}
}

// Nothing waits for the operator: what it knows of the epoch is written down once it is back. A stranger in its place is not believed.
func TestAnOperatorThatIsAway(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	g.away = true
	s.Exec(t, "CREATE DATABASE d")
	g.run("a", s)
	if l := g.archived("a"); len(l.Epochs) > 0 || len(l.Logs) == 0 {
		t.Errorf("%+v", l)
	}
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	own := g.key
	g.key, g.away = stranger, false
	g.mu.Unlock()
	time.Sleep(5 * time.Second)
	if l := g.list(); len(l.Epochs) > 0 {
		t.Errorf("a stranger was believed: %+v", l.Epochs)
	}
	g.mu.Lock()
	g.key = own
	g.mu.Unlock()
	g.until("a", "the epoch is written down", func(wire.ArchiverStatus) bool { return len(g.list().Epochs) == 1 })
}
