// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

func (w *world) AwaitCheckpoint(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkpoints++
	return w.checkpoint
}

// set changes what MySQL says.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// covers runs the loop for a while and tells what is reported of the data dictionary in the end.
func (w *world) covers(d time.Duration) bool {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.agent.cover(ctx) }()
	time.Sleep(d)
	synctest.Wait()
	cancel()
	<-done
	c := w.agent.Report().Coverage
	return c != nil && c.SystemTablespace
}

// A clone from a site whose dictionary was encrypted just now may not start: a replica on which that arrives says that it is
// encrypted only after a checkpoint, also if its sidecar is restarted meanwhile.
func TestCoveredOnlyBehindACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.checkpoint = errors.New("not yet")
		if w.covers(30*time.Second) || w.checkpoints != 0 {
			t.Errorf("in the clear: told as encrypted, or %d checkpoints awaited", w.checkpoints)
		}
		w.set(func() { w.cover.SystemTablespace = true })
		if w.covers(30*time.Second) || w.checkpoints == 0 {
			t.Error("told as encrypted before a checkpoint")
		}
		w.agent = New(w.agent.Config)
		if w.covers(30 * time.Second) {
			t.Error("forgotten by a restart: told as encrypted before a checkpoint")
		}
		w.set(func() { w.checkpoint = nil })
		if !w.covers(30 * time.Second) {
			t.Error("not told after the checkpoint")
		}
		before := w.checkpoints
		w.agent = New(w.agent.Config)
		if !w.covers(30*time.Second) || w.checkpoints != before {
			t.Errorf("%d checkpoints awaited for nothing", w.checkpoints-before)
		}
	})
}

// What cannot be remembered is not begun: after a crash nobody would wait for the checkpoint.
func TestNothingIsCoveredThatCannotBeRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open = true
		blocked := filepath.Join(w.agent.Record.Dir, recordFile+".tmp")
		if err := os.Mkdir(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		if w.covers(2*time.Minute) || w.altered != 0 {
			t.Errorf("%d statements, report %+v", w.altered, w.agent.Report().Coverage)
		}
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		if !w.covers(2*time.Minute) || w.altered == 0 {
			t.Errorf("the volume is well again: %d statements, report %+v", w.altered, w.agent.Report().Coverage)
		}
	})
}

// Data that was made with an encrypted dictionary waits for nothing.
func TestMadeCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cover.SystemTablespace, w.checkpoint = true, errors.New("never")
		if !w.covers(3*time.Second) || w.checkpoints != 0 {
			t.Errorf("%d checkpoints awaited, report %+v", w.checkpoints, w.agent.Report().Coverage)
		}
	})
}

// A site whose dictionary stays in the clear by specification waits for nothing either.
func TestNotCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.CoverSystem = false })
		w.open = true
		if w.covers(30*time.Second) || w.checkpoints != 0 || w.altered != 0 || w.agent.record.Covering {
			t.Errorf("%d statements, %d checkpoints, record %+v", w.altered, w.checkpoints, w.agent.record)
		}
	})
}

// A clone may bring the accounts of a donor that lacks rights: it is told, and logged once.
func TestMissingRightIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		w := newWorld(t, func(c *Config) { c.RightMissing = func() { told++ } })
		w.sqlErr = fmt.Errorf("read coverage: %w", mysql.ErrRightMissing)
		w.covers(10 * time.Second)
		if told == 0 || w.agent.Report().Coverage != nil {
			t.Errorf("told %d times, report %+v", told, w.agent.Report().Coverage)
		}
		w.sqlErr, told = errors.New("gone away"), 0
		if w.covers(10 * time.Second); told != 0 {
			t.Error("a server that does not answer was taken for one that refuses")
		}
	})
}

func TestCoverEncryptsOnTheOpenSiteOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cover = mysql.Coverage{Unencrypted: 2, RedoLog: true, BinaryLog: true}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.agent.cover(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		want := &wire.CoverageReport{Unencrypted: 2, RedoLog: true, BinaryLog: true}
		if diff := cmp.Diff(want, w.agent.Report().Coverage); diff != "" || w.altered != 0 {
			t.Errorf("a replica: %d statements (-want +got):\n%s", w.altered, diff)
		}
		w.mu.Lock()
		w.open = true
		w.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := w.agent.Report().Coverage; !got.SystemTablespace || w.altered != 2 {
			t.Errorf("the first try failed: %d tries, %+v", w.altered, got)
		}
		cancel()
		<-done
	})
}

// Tables of engines that cannot encrypt are in the clear, whatever InnoDB says: a site with one is not covered.
func TestTablesThatCannotBeEncryptedCount(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		want  int32
	}{
		"InnoDB alone":     {[]string{"app/t.ibd", "app/t_1.sdi", "ibdata1"}, 0},
		"of each engine":   {[]string{"app/t.MYD", "app/t.MYI", "app/t_1.sdi", "app/c.CSV", "app/c.CSM", "app/a.ARZ", "app/t.ibd"}, 3},
		"partitions":       {[]string{"app/t#p#p0.MYD", "app/t#p#p1.MYD", "other/t.MYD"}, 3},
		"MySQL's own":      {[]string{"mysql/general_log.CSV", "mysql/slow_log.CSV", "performance_schema/x.MYD", "sys/x.MYD"}, 0},
		"somebody's files": {[]string{"t.MYD"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, file := range tc.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(w.agent.Datadir, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(w.agent.Datadir, file), "rows")
			}
			w.cover = mysql.Coverage{Unencrypted: 1}
			if r, ok := w.agent.readCoverage(t.Context()); !ok || r.Unencrypted != 1+tc.want {
				t.Errorf("%v %+v", ok, r)
			}
		})
	}
	if n := plainTables(filepath.Join(t.TempDir(), "none")); n == 0 {
		t.Error("what cannot be read counts as in the clear")
	}
}

// What is said of the coverage travels in the clear, to whoever asks with a statement: numbers and flags, and no name of a schema or table.
func TestCoverageReportNamesNothing(t *testing.T) {
	for field := range reflect.TypeFor[wire.CoverageReport]().Fields() {
		if k := field.Type.Kind(); k != reflect.Bool && k != reflect.Int32 {
			t.Errorf("%s is a %s, which may name a table", field.Name, k)
		}
	}
}

func TestPlainLogs(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"none":             {nil, false},
		"encrypted":        {map[string]string{"binlog.000001": "\xfdbin....", "relay-bin.000002": "\xfdbin...."}, false},
		"old binary log":   {map[string]string{"binlog.000001": "\xfebin....", "binlog.000002": "\xfdbin...."}, true},
		"old relay log":    {map[string]string{"relay-bin.000001": "\xfebin...."}, true},
		"only begun":       {map[string]string{"binlog.000001": "\xfe"}, false},
		"indexes":          {map[string]string{"binlog.index": "\xfebin...."}, false},
		"somebody's files": {map[string]string{"ibdata1": "\xfebin....", "binlog.old": "\xfebin...."}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tc.files {
				put(t, filepath.Join(dir, file), content)
			}
			if got := plainLogs(dir); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if !plainLogs(filepath.Join(t.TempDir(), "none")) {
		t.Error("what cannot be read counts as in the clear")
	}
}
