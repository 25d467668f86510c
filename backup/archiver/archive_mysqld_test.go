// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package archiver

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// What is archived is the binary log byte for byte, in the clear whatever the server does with its files, with tagged GTIDs too.
func TestTheArchiveIsTheBinaryLog(t *testing.T) {
	for name, encrypted := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, mysqltest.Options{Keyring: encrypted})
			g := newGroup(t)
			g.opened(1, "a", s)
			s.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)", "INSERT INTO d.t (v) VALUES ('one')", "FLUSH BINARY LOGS")
			g.run("a", s)
			g.archived("a")
			s.Exec(t, "SET gtid_next = 'AUTOMATIC:audit'", "INSERT INTO d.t (v) VALUES ('tagged')", "INSERT INTO d.t (v) VALUES (REPEAT('x', 3000000))")
			g.archived("a")
			s.Exec(t, "INSERT INTO d.t (v) VALUES ('three')", "SET SESSION binlog_transaction_compression = ON", "INSERT INTO d.t (v) SELECT v FROM d.t")
			l := g.archived("a")
			open := logs(t, s)[len(logs(t, s))-1]
			segments := 0
			for _, f := range l.Logs {
				if f.Log == open && !f.Sealed {
					segments++
				}
			}
			if segments < 2 {
				t.Errorf("%d segments of the open log", segments)
			}
			compare(t, g, s, l, open)
			s.Exec(t, "FLUSH BINARY LOGS", "INSERT INTO d.t (v) VALUES ('four')")
			g.until("a", "the segments are one file", func(wire.ArchiverStatus) bool {
				l = g.list()
				for _, f := range l.Logs {
					if f.Log == open && f.Sealed {
						return l.Replaced.Files == 0
					}
				}
				return false
			})
			l = g.archived("a")
			all := logs(t, s)
			for _, log := range all {
				if archive.Number(log) < archive.Number(l.Logs[0].Log) {
					continue // it was empty
				}
				compare(t, g, s, l, log)
				raw, err := os.ReadFile(filepath.Join(s.Dir, "data", log))
				if err != nil || bytes.HasPrefix(raw, []byte(archive.Magic)) == encrypted {
					t.Errorf("%s: %v: encrypted is %t", log, err, encrypted)
				}
				// The server's own file, once it is closed.
				if !encrypted && log != all[len(all)-1] && !bytes.Equal(raw, g.plaintext(l, 1, log)) {
					t.Errorf("%s is not the server's file", log)
				}
			}
			p := archive.History(l)
			if len(p.Gaps) > 0 || !p.Archived.Equal(executed(t, s)) || !strings.Contains(p.Archived.String(), "audit") || l.Epochs[0].Epoch != 1 {
				t.Errorf("gaps %v, archived %s, executed %s", p.Gaps, p.Archived, executed(t, s))
			}
		})
	}
}

// compare compares a log with what mysqlbinlog gets.
func compare(t *testing.T, g *group, s *mysqltest.Server, l archive.Listing, log string) {
	t.Helper()
	got, want := g.plaintext(l, 1, log), fromServer(t, s, log)
	if !bytes.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("%s: %d bytes instead of %d, and they differ at %d", log, len(got), len(want), at)
	}
	if decoded(t, got) != decoded(t, want) {
		t.Errorf("%s: mysqlbinlog reads something else", log)
	}
}
