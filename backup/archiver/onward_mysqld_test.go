// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package archiver

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// An archiver that has much to catch up with says from the first log on that it archives, and how much is left.
func TestCatchingUpIsNoStandby(t *testing.T) {
	t.Parallel()
	s := newServer(t, mysqltest.Options{})
	g := newGroup(t)
	g.opened(1, "a", s)
	s.Exec(t, "CREATE DATABASE d", makeTable)
	for range 3 {
		s.Exec(t, "INSERT INTO d.t (v) SELECT REPEAT(HEX(RANDOM_BYTES(1024)), 8192)", "FLUSH BINARY LOGS")
	}
	g.mu.Lock()
	g.turn.Active = false
	g.mu.Unlock()
	slow := g.process("a", s, 2<<20) // some 24 s for three logs of 16 MiB
	g.until("a", "it stands by", func(st wire.ArchiverStatus) bool { return st.State == wire.ArchiverStandby })
	g.mu.Lock()
	g.turn.Active = true
	g.mu.Unlock()
	began := time.Now()
	for _, left := range []int64{48 << 20, 32 << 20, 16 << 20} {
		st := g.until("a", "it is under way", func(st wire.ArchiverStatus) bool {
			return st.State != wire.ArchiverStandby && st.PendingBytes < left+(1<<20)
		})
		if st.State != wire.ArchiverArchiving || st.PendingBytes < left-(1<<20) || st.Epoch != 1 {
			t.Fatalf("after %s, with %d left: %+v", time.Since(began), left, st)
		}
	}
	_ = slow.Process.Kill()
}
