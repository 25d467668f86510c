// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package archiver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// lose removes the data of a file, and leaves its manifest.
func (g *group) lose(f archive.Log) {
	g.t.Helper()
	g.loseObject(f, f.Object.Key)
}

// loseObject removes an object of a file.
func (g *group) loseObject(f archive.Log, name string) {
	g.t.Helper()
	folder := fmt.Sprintf("%010d-%s-%s", f.Epoch, f.Site, f.ServerUUID)
	if err := os.Remove(filepath.Join(g.dir, "bucket", "shop", "orders", "archive", "binlogs", folder, name)); err != nil {
		g.t.Fatal(err)
	}
}

// What somebody removed from the storage is archived once more while the server has it: whole logs, and the open one. What the server has not is told
// as a gap, with its transactions.
func TestWhatWasRemovedByHand(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	s.Exec(t, "CREATE DATABASE d", makeTable, "INSERT INTO d.t (v) VALUES ('one')", "FLUSH BINARY LOGS", "INSERT INTO d.t (v) VALUES ('two')", "FLUSH BINARY LOGS",
		"INSERT INTO d.t (v) VALUES ('three')")
	g.run("a", s)
	l := g.archived("a")
	for _, f := range l.Logs {
		g.lose(f)
	}
	if l = g.list(); len(l.Missing) < 3 || len(l.Logs) > 0 {
		t.Fatalf("%d are missing, and %d are there", len(l.Missing), len(l.Logs))
	}
	g.until("a", "it is archived once more", func(wire.ArchiverStatus) bool { l = g.list(); return len(l.Missing) == 0 && len(l.Logs) >= 3 })
	s.Exec(t, "INSERT INTO d.t (v) VALUES ('four')")
	l = g.archived("a")
	complete(t, g, s, l)
	for _, log := range logs(t, s) {
		if archive.Number(log) >= archive.Number(l.Logs[0].Log) {
			compare(t, g, s, l, log)
		}
	}
	// With its manifest, nothing tells of it but what comes behind it.
	between := l.Logs[1+slices.IndexFunc(l.Logs[1:], func(f archive.Log) bool { return f.Sealed && !f.Set.IsEmpty() })]
	g.lose(between)
	g.loseObject(between, between.Log+".json")
	g.until("a", "what is gone with its manifest is archived once more", func(wire.ArchiverStatus) bool {
		l = g.list()
		return slices.ContainsFunc(l.Logs, func(f archive.Log) bool { return f.Log == between.Log })
	})
	l = g.archived("a")
	complete(t, g, s, l)
	gone := l.Logs[0]
	all := logs(t, s)
	s.Exec(t, "PURGE BINARY LOGS TO '"+all[len(all)-1]+"'")
	g.lose(gone)
	st := g.until("a", "a gap is told", func(st wire.ArchiverStatus) bool { return st.GapCount == 1 })
	if st.Gaps[0].GTIDs != gone.GTIDs || st.Gaps[0].Epoch != 1 || st.Gaps[0].Site != "a" || st.State != wire.ArchiverArchiving {
		t.Errorf("%+v", st)
	}
}
