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
		"another site in this epoch":   {archive.Listing{Replaced: []archive.Log{log(3, "b", serverOurs)}}, true},
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
