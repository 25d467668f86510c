// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// I26: a server that lacks what is archived of its history numbers other transactions as it numbered those. What a failover lost, it need not have.
func TestResetLogsAreSeenI26(t *testing.T) {
	theirLog := archive.LogManifest{Epoch: 1, Site: "b", ServerUUID: serverTheirs, Log: "binlog.000001", Sealed: true, GTIDs: serverTheirs + ":1-1000"}
	first, second := []wire.CutoffEpoch{opened(1, "a", serverOurs, "")}, []wire.CutoffEpoch{opened(1, "b", serverTheirs, ""), opened(2, "a", serverOurs, serverTheirs+":1-80")}
	ourLog := sealedLog(2, "binlog.000001")
	ourLog.GTIDs, ourLog.PreviousGTIDs = numbered("1-9"), serverTheirs+":1-80"
	for name, tc := range map[string]struct {
		files    []archive.LogManifest
		epochs   []wire.CutoffEpoch
		executed string
		away     bool
		reset    bool
	}{
		"nothing is archived":    {nil, first, numbered("1-80"), false, false},
		"it has all":             {[]archive.LogManifest{holding(sealedLog(1, "binlog.000001"), "", "1-1000")}, first, numbered("1-1080"), false, false},
		"it was reset":           {[]archive.LogManifest{holding(sealedLog(1, "binlog.000001"), "", "1-1000")}, first, numbered("1-80"), false, true},
		"the epoch is not known": {[]archive.LogManifest{holding(sealedLog(1, "binlog.000001"), "", "1-1000")}, first, numbered("1-80"), true, false},
		"a failover lost it":     {[]archive.LogManifest{theirLog, ourLog}, second, serverTheirs + ":1-80," + numbered("1-9"), false, false},
		"reset after a failover": {[]archive.LogManifest{theirLog, ourLog}, second, serverTheirs + ":1-80," + numbered("1-3"), false, true},
	} {
		a, _ := stored(t, tc.files...)
		st := &serverState{UUID: serverOurs, Log: "binlog.000001", Logs: []string{"binlog.000001"}, Bytes: []int64{1}, Position: 1, Executed: gtid.MustParse(tc.executed)}
		p := programOf(t, a, st, nil, append([]wire.CutoffEpoch{}, tc.epochs...)...)
		if tc.away {
			p.operator = func(context.Context) (wire.Cutoff, error) { return wire.Cutoff{}, errors.New("it is away") }
		}
		w, err := p.takeOver(t.Context(), int64(len(tc.epochs)))
		w.end()
		if tc.reset != (err != nil) || tc.reset && reasonOf(err) != string(LogsReset) {
			t.Errorf("I26: %s: %v", name, err)
		}
	}
}

// I26: logs that are reset while they are archived are seen in the next round, and no log of the same name replaces what is archived.
func TestLogsAreResetInTheMiddleI26(t *testing.T) {
	open := sealedLog(1, "binlog.000001")
	open.Sealed = false
	a, dir := stored(t, holding(open, "", "1-3"))
	st := oneLog()
	p := programOf(t, a, st, nil, opened(1, "a", serverOurs, ""))
	w := workOf(t, p, 1)
	w.next = st.Log
	for _, tc := range []struct {
		executed string
		known    bool // what the epoch began with
		reset    bool
	}{{"1-2", false, false}, {"1-2", true, true}, {"1-3", true, false}, {"1-5", true, false}, {"1-4", true, true}, {"1-2", true, true}} {
		st.Executed = gtid.MustParse(numbered(tc.executed))
		if tc.known {
			if _, err := w.learn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if state, err := w.round(t.Context()); tc.reset != (err != nil) || tc.reset && reasonOf(err) != string(LogsReset) || (state == wire.ArchiverArchiving) == tc.reset {
			t.Errorf("I26: %+v: %s, %v", tc, state, err)
		}
	}
	st.Log, st.Logs = "binlog.000002", []string{"binlog.000001", "binlog.000002"}
	if err := w.janitor.seal(t.Context()); err != nil {
		t.Errorf("I26: one file is made of a log that was reset: %v", err)
	}
	st.Executed = gtid.MustParse(numbered("1-5"))
	if err := w.janitor.seal(t.Context()); err == nil {
		t.Error("the test is none: there is no server, and it was asked for nothing")
	}
	// What is missing stays told: the server's log of that name is another one.
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".json") {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		executed string
		missing  int
	}{{"1-2", 1}, {"1-5", 0}} {
		st.Executed = gtid.MustParse(numbered(tc.executed))
		if err := w.janitor.prune(t.Context()); err != nil || len(listing(t, a).Missing) != tc.missing || w.stale.Load() != (tc.missing == 0) {
			t.Errorf("I26: with %s: %d missing: %v", tc.executed, len(listing(t, a).Missing), err)
		}
	}
}
