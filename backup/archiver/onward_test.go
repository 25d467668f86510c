// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
)

// While it catches up, the status says so, and how far it is: neither that it stands by, nor the reason of a failure that is over.
func TestWhatIsSaidInTheMiddleOfARound(t *testing.T) {
	now := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	p := &Program{log: slog.New(slog.DiscardHandler), board: &board{}, now: func() time.Time { return now }}
	w := &work{p: p, epoch: 2, uuid: serverOurs, next: "binlog.000002", ledger: newLedger(archive.Listing{}, archive.LogManifest{Epoch: 2, Site: "a", ServerUUID: serverOurs})}
	st := serverState{Log: "binlog.000003", Logs: []string{"binlog.000001", "binlog.000002", "binlog.000003"}, Bytes: []int64{100, 200, 300}}
	for name, before := range map[string]func(){
		"it stood by": func() { p.board.outcome(wire.ArchiverStandby, nil, now) },
		"it failed":   func() { p.board.outcome(wire.ArchiverFailing, errors.New("the storage was away"), now) },
	} {
		before()
		w.onward(st)
		if s := p.board.get(); s.State != wire.ArchiverArchiving || s.Reason != "" || s.Message != "" || !s.FailingSince.IsZero() || s.PendingBytes != 500 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	w.next = "binlog.000003"
	w.onward(st)
	if s := p.board.get(); s.PendingBytes != 500 {
		t.Errorf("it is told for every log, of which there may be thousands: %+v", s)
	}
	now = now.Add(tellEvery)
	w.onward(st)
	if s := p.board.get(); s.PendingBytes != 300 {
		t.Errorf("%+v", s)
	}
}

// A failure of archiving itself stands until something is archived: otherwise it would seem well in the middle of each try.
func TestWhenItBeginsToArchive(t *testing.T) {
	for _, tc := range []struct {
		state    wire.ArchiverState
		wasStuck bool
		want     bool
	}{
		{wire.ArchiverStarting, false, true}, {wire.ArchiverStandby, false, true}, {wire.ArchiverStandby, true, true}, {wire.ArchiverFailing, false, true},
		{wire.ArchiverFailing, true, false}, {wire.ArchiverArchiving, false, false},
	} {
		p := &Program{board: &board{}, wasStuck: tc.wasStuck}
		p.board.set(func(s *wire.ArchiverStatus) { s.State = tc.state })
		if got := p.begins(); got != tc.want {
			t.Errorf("%+v: %t", tc, got)
		}
	}
}
