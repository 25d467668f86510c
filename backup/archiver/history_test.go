// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

const (
	serverOurs   = "aaaaaaaa-0000-0000-0000-000000000001"
	serverTheirs = "bbbbbbbb-0000-0000-0000-000000000002"
)

// I26: what cannot be of our history is seen, and what can be is not taken for another's.
func TestAnotherHistoryI26(t *testing.T) {
	ours := archive.LogManifest{Epoch: 3, Site: "a", ServerUUID: serverOurs}
	log := func(epoch int64, site, server string) archive.Log {
		return archive.Log{LogManifest: archive.LogManifest{Epoch: epoch, Site: site, ServerUUID: server, Log: "binlog.000001"}}
	}
	for name, tc := range map[string]struct {
		listing archive.Listing
		other   bool
	}{
		"empty":                        {},
		"earlier ones":                 {archive.Listing{Epochs: []archive.Epoch{{Epoch: 1}, {Epoch: 2}}, Logs: []archive.Log{log(1, "a", serverOurs), log(2, "b", serverTheirs)}}, false},
		"our own":                      {archive.Listing{Epochs: []archive.Epoch{{Epoch: 3, Site: "a"}}, Logs: []archive.Log{log(3, "a", serverOurs)}}, false},
		"a later epoch":                {archive.Listing{Epochs: []archive.Epoch{{Epoch: 4}}}, true},
		"a log of a later epoch":       {archive.Listing{Logs: []archive.Log{log(4, "a", serverOurs)}}, true},
		"another server in this epoch": {archive.Listing{Logs: []archive.Log{log(3, "a", serverTheirs)}}, true},
		"another site in this epoch":   {archive.Listing{Missing: []archive.Log{log(3, "b", serverOurs)}}, true},
	} {
		if why := otherHistory(tc.listing, ours); (why != "") != tc.other {
			t.Errorf("I26: %s: %q", name, why)
		}
	}
}

// I26: a group that was made again in the place of a lost one begins at epoch 1 once more, and the archive there knows later ones. Nothing is archived
// among them.
func TestNothingIsArchivedAmongAnothersEpochsI26(t *testing.T) {
	a, err := archive.Open(t.Context(), bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	if err := a.PutEpoch(t.Context(), archive.Epoch{Epoch: 3, Site: "a", PromotedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig([]byte(good(t).Text()))
	if err != nil {
		t.Fatal(err)
	}
	p := New(c, slog.New(slog.DiscardHandler))
	p.archive = a
	p.stateOf = func(context.Context) (serverState, error) {
		return serverState{UUID: serverOurs, Log: "binlog.000001", Logs: []string{"binlog.000001"}, Bytes: []int64{200}}, nil
	}
	p.operator = func(context.Context) (wire.Cutoff, error) { return wire.Cutoff{}, errors.New("it is away") }
	for epoch, foreign := range map[int64]bool{1: true, 2: true, 3: false, 4: false} {
		_, err := p.takeOver(t.Context(), epoch)
		if err == nil || (reasonOf(err) == string(bucket.Foreign)) != foreign {
			t.Errorf("I26: in epoch %d: %v", epoch, err)
		}
	}
}

// I27: what the operator does not know of the backups that are kept is read from the storage; while that fails nothing may go.
func TestWhatMayGoByTheManifestsI27(t *testing.T) {
	dir := t.TempDir()
	config := bucket.Config{Folder: dir, Namespace: "shop", Group: "orders"}
	a, err := archive.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	b, err := bucket.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	at := time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)
	for name, set := range map[string]string{"monday": serverOurs + ":1-9", "tuesday": serverOurs + ":1-7"} {
		w, err := b.Create(t.Context(), bucket.NewBackup{Name: name, UID: "uid", Now: at})
		if err != nil {
			t.Fatal(err)
		}
		part, err := w.Part(t.Context(), "data")
		if err != nil {
			t.Fatal(err)
		}
		if err := part.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(t.Context(), bucket.Manifest{Method: bucket.Logical, Site: "a", Epoch: 1, MySQLVersion: "9.7.4", GTIDExecuted: set, StartedAt: at, FinishedAt: at}); err != nil {
			t.Fatal(err)
		}
	}
	w := &work{archive: a}
	for name, tc := range map[string]struct {
		said wire.Cutoff
		want string
		err  bool
	}{
		"nothing":          {},
		"a set":            {said: wire.Cutoff{Cutoff: &at, GTIDExecuted: serverOurs + ":1-5"}, want: serverOurs + ":1-5"},
		"names":            {said: wire.Cutoff{Cutoff: &at, Backups: []string{"monday", "tuesday"}}, want: serverOurs + ":1-7"},
		"names and no day": {said: wire.Cutoff{Backups: []string{"monday"}}},
		"one that is gone": {said: wire.Cutoff{Cutoff: &at, Backups: []string{"monday", "sunday"}}, err: true},
	} {
		c, err := w.mayGo(t.Context(), tc.said)
		if c.Set.String() != tc.want || (err != nil) != tc.err || c.At.IsZero() != (tc.want == "") {
			t.Errorf("I27: %s: %+v, %v", name, c, err)
		}
	}
}
