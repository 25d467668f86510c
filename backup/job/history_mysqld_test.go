// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// history is what a group of real servers did: who was active in which epoch, what was acknowledged, and what of it was lost.
type history struct {
	t     *testing.T
	job   *job
	sites map[string]*mysqltest.Server
	conns map[string]*sql.Conn
	uuids map[string]string
	rand  *rand.Rand

	epoch   int64
	active  string
	journal []entry
	next    map[string]int64 // of each site and tag
	// archived is what the archive holds, and times are when each transaction was committed.
	archived gtid.Set
	times    map[string]time.Time
	begun    map[string]bool // folders
	tables   int
	sure     int // tables that the other sites have, once they are cut off
	rows     int
	opened   map[int64]gtid.Set
}

// entry is one transaction that was acknowledged.
type entry struct {
	id    string
	epoch int64
	sql   []string
	lost  bool
}

func newHistory(t *testing.T, seed uint64, keyring bool, names ...string) *history {
	t.Helper()
	h := &history{
		t: t, sites: map[string]*mysqltest.Server{}, conns: map[string]*sql.Conn{}, uuids: map[string]string{}, rand: rand.New(rand.NewPCG(seed, 1)),
		next: map[string]int64{}, times: map[string]time.Time{}, begun: map[string]bool{}, opened: map[int64]gtid.Set{},
	}
	for i, name := range names {
		options := mysqltest.Options{TLS: true, Keyring: keyring, BeforeStart: anotherServer, Config: []string{
			"innodb_redo_log_capacity=128M", "max_allowed_packet=64M", "max_binlog_size=256K", "binlog_encryption=OFF",
		}}
		if i == 0 {
			h.sites[name] = origin(t, options)
		} else {
			h.sites[name] = mysqltest.Start(t, options)
		}
		conn, err := h.sites[name].Root(t).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		h.conns[name] = conn
		h.uuids[name] = h.ask(name, "SELECT @@server_uuid")
		h.run(name, "SET GLOBAL super_read_only = OFF", "SET SESSION sql_log_bin = 0", "CREATE USER mfg_r@'%' IDENTIFIED BY 'r'", "GRANT REPLICATION SLAVE ON *.* TO mfg_r@'%'", "SET SESSION sql_log_bin = 1")
	}
	h.job = newJob(t, keyring).from(h.sites[names[0]])
	h.job.config.Server.BufferPoolBytes = 64 << 20
	h.job.config.TimeoutSeconds = 900 // on a machine that is busy with much else too
	h.epoch, h.active = 1, names[0]
	h.follow()
	h.putEpoch("Initial")
	return h
}

// anotherServer gives a server a new identity when it begins with what a clone has brought, as the supervisor of mysqld does in the pods.
func anotherServer(datadir string) {
	if _, err := os.Stat(filepath.Join(datadir, "#clone", "#status_fix")); err == nil {
		_ = os.Remove(filepath.Join(datadir, "auto.cnf"))
	}
}

func (h *history) run(site string, statements ...string) {
	h.t.Helper()
	for _, statement := range statements {
		if _, err := h.conns[site].ExecContext(h.t.Context(), statement); err != nil {
			h.t.Fatalf("%s: %.200s: %v", site, statement, err)
		}
	}
}

func (h *history) ask(site, query string) string {
	h.t.Helper()
	var text string
	if err := h.conns[site].QueryRowContext(h.t.Context(), query).Scan(&text); err != nil {
		h.t.Fatalf("%s: %s: %v", site, query, err)
	}
	return strings.ReplaceAll(text, "\n", "")
}

func (h *history) executed(site string) gtid.Set {
	return gtid.MustParse(h.ask(site, "SELECT @@GLOBAL.gtid_executed"))
}

// follow has all others replicate from the active site.
func (h *history) follow(except ...string) {
	h.t.Helper()
	for name := range h.sites {
		if name == h.active || slices.Contains(except, name) {
			continue
		}
		h.run(name, "STOP REPLICA", "RESET REPLICA ALL", fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, "+
			"SOURCE_USER = 'mfg_r', SOURCE_PASSWORD = 'r', SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 1", h.sites[h.active].Port), "START REPLICA")
	}
}

// caughtUp waits until a site has all that the active one has.
func (h *history) caughtUp(site string) {
	h.t.Helper()
	if got := h.ask(site, fmt.Sprintf("SELECT WAIT_FOR_EXECUTED_GTID_SET('%s', 300)", h.executed(h.active))); got != "0" {
		h.t.Fatalf("site %s does not catch up: %s", site, got)
	}
}

// cut ends replication: what is written from now on is lost by the next failover.
func (h *history) cut() {
	h.t.Helper()
	h.sure = h.tables
	for name := range h.sites {
		if name != h.active {
			h.caughtUp(name)
			h.run(name, "STOP REPLICA")
		}
	}
}

// fail has another site become active: with what it has. Everything that the old one has besides is lost, and it stays as it is.
func (h *history) fail(to, kind string) {
	h.t.Helper()
	old := h.active
	if kind == archive.KindPlanned {
		h.caughtUp(to)
	}
	h.archive(false)
	h.epoch, h.active = h.epoch+1, to
	have := h.executed(to)
	for i := range h.journal {
		if !have.Contains(gtid.MustParse(h.journal[i].id)) {
			h.journal[i].lost = true
		}
	}
	h.run(to, "STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	h.putEpoch(kind)
	if kind == archive.KindPlanned {
		h.run(old, "SET GLOBAL super_read_only = ON")
		h.follow()
	} else {
		h.tables = h.sure
		h.follow(old)
		delete(h.sites, old)
	}
}

func (h *history) store() *archive.Archive {
	h.t.Helper()
	a, err := archive.Open(h.t.Context(), bucket.Config{Folder: filepath.Join(h.job.dir, "bucket"), Namespace: "shop", Group: "orders"})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = a.Close() })
	return a
}

func (h *history) putEpoch(kind string) {
	h.t.Helper()
	have := h.executed(h.active)
	h.opened[h.epoch] = have
	err := h.store().PutEpoch(h.t.Context(), archive.Epoch{
		Epoch: h.epoch, Site: h.active, ServerUUID: h.uuids[h.active], PromotedAt: time.Now(), Kind: kind, GTIDExecuted: have.String(),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.readable()
}

// write commits one transaction on the active site, with a GTID that is known before.
func (h *history) write(tag string, statements ...string) {
	h.t.Helper()
	key := h.uuids[h.active]
	if tag != "" {
		key += ":" + tag
	}
	if h.next[key] == 0 {
		h.next[key] = 1000 // beyond what the servers number themselves
	}
	h.next[key]++
	id := fmt.Sprintf("%s:%d", key, h.next[key])
	all := []string{"SET SESSION gtid_next = '" + id + "'"}
	if ddl := len(statements) == 1 && !strings.HasPrefix(statements[0], "INSERT") && !strings.HasPrefix(statements[0], "UPDATE") &&
		!strings.HasPrefix(statements[0], "DELETE"); ddl {
		all = append(all, statements...)
	} else {
		all = append(append(append(all, "BEGIN"), statements...), "COMMIT")
	}
	h.run(h.active, append(all, "SET SESSION gtid_next = 'AUTOMATIC'")...)
	h.journal = append(h.journal, entry{id: id, epoch: h.epoch, sql: statements})
}

// some writes transactions of all kinds.
func (h *history) some(n int) {
	h.t.Helper()
	for range n {
		switch pick := h.rand.IntN(20); {
		case h.tables == 0 || pick == 0:
			h.tables++
			h.write("", fmt.Sprintf("CREATE TABLE d.t%d (id INT PRIMARY KEY, v VARCHAR(2000), n INT DEFAULT 0, KEY (n))", h.tables))
		case pick == 1:
			h.write("", fmt.Sprintf("ALTER TABLE d.t%d ADD COLUMN c%d INT DEFAULT %d", h.table(), len(h.journal), h.rand.IntN(100)))
		case pick == 2:
			h.write("", fmt.Sprintf("TRUNCATE TABLE d.t%d", h.table()))
		case pick == 3:
			h.write("", fmt.Sprintf("DELETE FROM d.t%d WHERE id %% 7 = %d", h.table(), h.rand.IntN(7)))
		case pick < 7:
			h.write("", fmt.Sprintf("UPDATE d.t%d SET n = n * 3 + id WHERE id %% 3 = %d", h.table(), h.rand.IntN(3)),
				fmt.Sprintf("UPDATE d.t%d SET v = CONCAT(LEFT(v, 500), '%d') WHERE id %% 5 = 1", h.table(), h.rand.IntN(1000)))
		case pick == 7:
			h.write("audit", h.insert(3))
		default:
			h.write("", h.insert(1+h.rand.IntN(20)), h.insert(1))
		}
	}
}

func (h *history) table() int { return 1 + h.rand.IntN(h.tables) }

func (h *history) insert(rows int) string {
	var values []string
	for range rows {
		h.rows++
		values = append(values, fmt.Sprintf("(%d, '%s', %d)", h.rows, strings.Repeat(string(rune('a'+h.rand.IntN(26))), h.rand.IntN(1500)), h.rand.IntN(1000)))
	}
	return fmt.Sprintf("INSERT INTO d.t%d (id, v, n) VALUES %s", h.table(), strings.Join(values, ", "))
}

// big writes one transaction of so many megabytes.
func (h *history) big(mib int) {
	h.t.Helper()
	h.write("", fmt.Sprintf("CREATE TABLE d.big%d (id INT PRIMARY KEY, v LONGTEXT)", mib))
	h.write("", fmt.Sprintf("INSERT INTO d.big%d WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i, REPEAT(CHAR(65 + i %% 26), 1048576) FROM n", mib, mib))
}

// archive puts what the active site has written into the archive: its logs whole but for the last, of which two segments are made if open
// is true, and none otherwise.
func (h *history) archive(open bool) {
	h.t.Helper()
	h.run(h.active, "FLUSH BINARY LOGS")
	names, err := filepath.Glob(filepath.Join(h.sites[h.active].Dir, "data", "binlog.0*"))
	if err != nil {
		h.t.Fatal(err)
	}
	names = names[:len(names)-1] // the one that was just begun
	folder := fmt.Sprintf("%d-%s", h.epoch, h.active)
	for i, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			h.t.Fatal(err)
		}
		whole := h.content(raw)
		if !h.begun[folder] && h.archived.Contains(whole.Set) {
			continue
		}
		h.begun[folder] = true
		if last := i == len(names)-1; last && open && whole.Transactions > 2 {
			h.segments(filepath.Base(name), raw, whole)
		} else if !h.begun[folder+name] {
			h.put(archive.LogManifest{Log: filepath.Base(name), Sealed: true}, raw, whole)
		}
		h.begun[folder+name] = true
		h.archived = h.archived.Union(whole.Set)
	}
}

// segments puts a log as three parts, which end between transactions.
func (h *history) segments(name string, raw []byte, whole archive.Content) {
	h.t.Helper()
	var ends []int64
	if err := archive.Transactions(bytes.NewReader(raw), archive.Log{}, func(x archive.Transaction) error {
		ends = append(ends, x.To)
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	previous, from := whole.Previous, int64(0)
	for _, to := range []int64{ends[0], ends[len(ends)/2], ends[len(ends)-1]} {
		if to == from {
			continue
		}
		part := archive.NewCounter(previous, whole.Checksums)
		h.count(part, raw[from:to], from)
		held := part.Content()
		h.put(archive.LogManifest{Log: name, From: from}, raw[from:to], held)
		previous, from = previous.Union(held.Set), to
	}
}

// content reads what a log holds.
func (h *history) content(raw []byte) archive.Content {
	c := archive.NewCounter(gtid.Set{}, false)
	h.count(c, raw, 0)
	return c.Content()
}

func (h *history) count(c *archive.Counter, raw []byte, from int64) {
	h.t.Helper()
	at := from
	if from == 0 {
		at = int64(len(archive.Magic))
		raw = raw[at:]
	}
	for len(raw) > 0 {
		head, err := archive.ParseHeader(raw)
		if err == nil && head.Telling() {
			err = c.Add(raw[:head.Bytes], at)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		raw, at = raw[head.Bytes:], at+head.Bytes
	}
}

func (h *history) put(l archive.LogManifest, raw []byte, held archive.Content) {
	h.t.Helper()
	l.Epoch, l.Site, l.ServerUUID = h.epoch, h.active, h.uuids[h.active]
	a := h.store()
	r, err := archive.ParseRecipients(h.job.config.Recipients)
	if err != nil {
		h.t.Fatal(err)
	}
	f, err := a.Create(h.t.Context(), l, r)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := io.Copy(f, bytes.NewReader(raw)); err != nil {
		h.t.Fatal(err)
	}
	held.SeenAt = time.Now()
	log, err := f.Commit(h.t.Context(), held)
	if err != nil && !errors.Is(err, archive.ErrThere) {
		h.t.Fatal(err)
	}
	if err := archive.Transactions(bytes.NewReader(raw), archive.Log{LogManifest: log.LogManifest}, func(x archive.Transaction) error {
		h.times[x.GTID] = x.Committed
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	h.readable()
}

// readable gives the storage to the user of the pod.
func (h *history) readable() {
	_ = filepath.Walk(filepath.Join(h.job.dir, "bucket"), func(path string, _ os.FileInfo, _ error) error { return os.Chown(path, 999, 999) })
}

// backup makes a backup of a site.
func (h *history) backup(site, name, method string) terms.Result {
	h.t.Helper()
	h.job.from(h.sites[site])
	h.job.config.Backup, h.job.config.Site, h.job.config.Epoch, h.job.config.Method = name, site, h.epoch, method
	return h.job.must("make")
}

// kept is the journal without what was lost: the history.
func (h *history) kept() []entry {
	var out []entry
	for _, e := range h.journal {
		if !e.lost {
			out = append(out, e)
		}
	}
	return out
}

// before is how many transactions of the history a target takes.
func (h *history) before(p terms.PointInTime) int {
	kept := h.kept()
	for i, e := range kept {
		switch {
		case p.GTID == e.id:
			return i + 1
		case p.BeforeGTID == e.id, p.BeforeFailover > 0 && e.epoch >= p.BeforeFailover, p.Time != nil && h.times[e.id].After(*p.Time):
			return i
		}
	}
	return len(kept)
}

// load restores to a point, and opens what came of it.
func (h *history) load(n int, p terms.PointInTime, keyring bool) (terms.Result, *sql.DB) {
	h.t.Helper()
	h.job.site(keyring)
	dir := fmt.Sprintf("/srv/volume/p%d.restored", n)
	h.job.config.Backup, h.job.config.PointInTime, h.job.config.Server.Dir = "", &p, dir
	res := h.job.must("load")
	return res, h.job.opened(dir, keyring)
}

// clean fails if something of the replay is left.
func (h *history) clean(n int, db *sql.DB) {
	h.t.Helper()
	left, err := filepath.Glob(filepath.Join(h.job.dir, "volume", fmt.Sprintf("p%d.restored", n), "mfg-replay*"))
	if err != nil || len(left) > 0 {
		h.t.Errorf("relay logs are left: %v %v", left, err)
	}
	for query, want := range map[string]string{
		"SELECT COUNT(*) FROM mysql.slave_master_info": "0", "SELECT COUNT(*) FROM mysql.slave_relay_log_info": "0",
		"SELECT COUNT(*) FROM mysql.user WHERE user IN ('mfg_load', 'mfg_archive')":                                   "0",
		"SELECT COUNT(*) FROM performance_schema.replication_connection_configuration WHERE CHANNEL_NAME <> ''":       "0",
		"SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Innodb_redo_log_enabled'": "ON",
	} {
		var got string
		if err := db.QueryRowContext(context.Background(), query).Scan(&got); err != nil || got != want {
			h.t.Errorf("%s: %s, %v", query, got, err)
		}
	}
}
