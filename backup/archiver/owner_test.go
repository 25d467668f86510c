// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

const theirs = `{"version":1,"uid":"another","since":"2026-11-28T03:00:00Z"}`

// oneLog is a server that writes its first log, of which one byte is archived.
func oneLog() *serverState {
	return &serverState{UUID: serverOurs, Log: "binlog.000001", Logs: []string{"binlog.000001"}, Bytes: []int64{1}, Position: 1, Executed: gtid.MustParse(numbered("1-3"))}
}

// I26: a group that was taken for gone is there all the same, and its place was given to another one. It writes and removes nothing there any more.
func TestThePlaceIsAnothersNowI26(t *testing.T) {
	s, a := openStorage(t)
	open := sealedLog(1, "binlog.000001")
	open.Sealed = false
	store(t, a, holding(open, "", "1-3"))
	p := programOf(t, a, oneLog(), nil, opened(1, "a", serverOurs, ""))
	now := began
	p.now = func() time.Time { return now }
	for _, owner := range []string{"", `{"version":1,"uid":"uid","since":"2026-11-28T02:00:00Z"}`} {
		if owner != "" {
			s.put("owner.json", owner)
		}
		w := workOf(t, p, 1)
		if err := w.janitor.prune(t.Context()); err != nil || w.stale.Load() {
			t.Errorf("I26: with the owner %q nothing is pruned: %v", owner, err)
		}
	}
	w := workOf(t, p, 1)
	w.next = "binlog.000001"
	w.owned.Store(now.UnixNano())
	s.put("owner.json", theirs)
	s.changed()
	if err := w.janitor.prune(t.Context()); reasonOf(err) != string(bucket.Foreign) || !w.stale.Load() || len(s.changed()) > 0 {
		t.Errorf("I26: %v, taken over once more: %t, changed %v", err, w.stale.Load(), s.changed())
	}
	w.stale.Store(false)
	now = now.Add(ownedFor)
	for name, write := range map[string]func() error{
		"the heartbeat": func() error { _, err := w.round(t.Context()); return err },
		"a file":        func() error { return w.mayWrite(t.Context()) },
	} {
		if err := write(); reasonOf(err) != string(bucket.Foreign) || len(s.changed()) > 0 {
			t.Errorf("I26: %s is written: %v", name, err)
		}
	}
	// The work ends, and it is not taken up again.
	for range 2 {
		if state, err := p.archiveIn(t.Context(), 1, &w); state != wire.ArchiverFailing || reasonOf(err) != string(bucket.Foreign) || w != nil || len(s.changed()) > 0 {
			t.Errorf("I26: %s: %v, the work goes on: %t", state, err, w != nil)
		}
	}
}

// It is not asked before every write.
func TestHowOftenTheOwnerIsAskedFor(t *testing.T) {
	s, a := openStorage(t)
	s.put("owner.json", theirs)
	p := programOf(t, a, oneLog(), nil, opened(1, "a", serverOurs, ""))
	w := &work{p: p, archive: a, epoch: 1, uuid: serverOurs, ledger: newLedger(archive.Listing{}, archive.LogManifest{})}
	w.owned.Store(time.Now().UnixNano())
	if err := w.mayWrite(t.Context()); err != nil {
		t.Errorf("%v", err)
	}
	w.owned.Store(time.Now().Add(-ownedFor).UnixNano())
	if err := w.mayWrite(t.Context()); reasonOf(err) != string(bucket.Foreign) {
		t.Errorf("%v", err)
	}
}
