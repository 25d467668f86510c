// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// fake is a mysqld and its volume.
type fake struct {
	silent, hangs atomic.Bool
	asked         atomic.Int32
	status        mysql.Status
}

func (f *fake) Status(ctx context.Context) (mysql.Status, error) {
	f.asked.Add(1)
	if f.hangs.Load() {
		<-ctx.Done()
		return mysql.Status{}, ctx.Err()
	}
	return f.status, nil
}

func (f *fake) Measures(_ context.Context, names []string) (map[string]float64, error) {
	values := map[string]float64{mysql.MeasureMaxConnections: 151, mysql.MeasureBinlogWritten: 7, mysql.MeasureOpenChange: 9}
	for _, name := range names {
		values[name] = 2
	}
	return values, nil
}

func set(t *testing.T, text string) gtid.Set {
	t.Helper()
	s, err := gtid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const source = "00000000-0000-0000-0000-000000000001"

func start(t *testing.T, f *fake, volume func() (Use, error)) *Agent {
	a := &Agent{MySQL: f, Volume: volume, Answers: func() bool { return !f.silent.Load() }, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go a.Run(ctx)
	synctest.Wait()
	return a
}

func room() (Use, error) {
	return Use{Size: 100, Available: 40, Used: 50, Files: 10, FilesFree: 4, Binlogs: 2, BinlogBytes: 30}, nil
}

// scrape gives what a scrape gets, by name and label.
func scrape(t *testing.T, a *Agent) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(a)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += "/" + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return got
}

func TestWhatAScrapeGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.status.Executed, f.status.Retrieved = set(t, source+":1-100"), set(t, source+":90-130")
		lag := 2.5
		f.status.Replica = &mysql.ReplicaStatus{IORunning: true, LagSeconds: &lag}
		got := scrape(t, start(t, f, room))
		for name, want := range map[string]float64{
			"sidecar_mysql_measured": 1, "sidecar_mysql_connections": 2, "sidecar_mysql_max_connections": 151,
			"sidecar_mysql_binlog_written_bytes_total": 7, "sidecar_mysql_statements_total/commit": 2,
			"sidecar_mysql_innodb_buffer_pool_size_bytes": 4, "sidecar_mysql_innodb_row_lock_wait_seconds_total": 2e-3,
			"sidecar_mysql_transactions_total": 100, "sidecar_mysql_replication_receiver_running": 1,
			"sidecar_mysql_replication_applier_running": 0, "sidecar_mysql_replication_pending_transactions": 30,
			"sidecar_mysql_replication_lag_seconds": 2.5, "sidecar_volume_size_bytes": 100, "sidecar_volume_available_bytes": 40,
			"sidecar_volume_inodes": 10, "sidecar_volume_inodes_free": 4, "sidecar_binlog_files": 2, "sidecar_binlog_bytes": 30,
		} {
			if is, there := got[name]; !there || is != want {
				t.Errorf("%s is %v (there: %v), want %v", name, is, there, want)
			}
		}
		if n := len(got); n > 70 {
			t.Errorf("%d series: a site has 70 of these at most", n)
		}
	})
}

// However often strangers scrape, mysqld is asked once in an interval.
func TestScrapesCostMysqldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		a := start(t, f, room)
		for range 500 {
			scrape(t, a)
		}
		if n := f.asked.Load(); n != 1 {
			t.Errorf("mysqld was asked %d times for 500 scrapes", n)
		}
		time.Sleep(interval)
		synctest.Wait()
		if n := f.asked.Load(); n != 2 {
			t.Errorf("mysqld was asked %d times in two intervals", n)
		}
	})
}

// A mysqld that hangs delays no scrape, and what it said before goes after a minute.
func TestAHungMysqld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		a := start(t, f, room)
		f.hangs.Store(true)
		time.Sleep(interval + time.Second)
		synctest.Wait()
		began := time.Now()
		if got := scrape(t, a); got["sidecar_mysql_measured"] != 1 {
			t.Error("what was read a short while ago does not count")
		}
		time.Sleep(staleAfter)
		got := scrape(t, a)
		if _, there := got["sidecar_mysql_connections"]; there || got["sidecar_mysql_measured"] != 0 {
			t.Errorf("a server that hangs is told to be as it was before: %v", got)
		}
		if got["sidecar_volume_size_bytes"] != 100 {
			t.Error("its volume is not told")
		}
		if took := time.Since(began); took != staleAfter {
			t.Errorf("scrapes took %v", took-staleAfter)
		}
		f.hangs.Store(false)
		time.Sleep(2 * interval)
		synctest.Wait()
		if got := scrape(t, a); got["sidecar_mysql_measured"] != 1 {
			t.Error("a server that answers again is not measured")
		}
	})
}

// A mysqld that does not answer the agent is left alone: its queue of connections is for the fence.
func TestASilentMysqldIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.silent.Store(true)
		a := start(t, f, room)
		time.Sleep(10 * interval)
		synctest.Wait()
		if n := f.asked.Load(); n != 0 {
			t.Errorf("it was asked %d times", n)
		}
		if got := scrape(t, a); got["sidecar_mysql_measured"] != 0 {
			t.Error("it counts as measured")
		}
	})
}

// A volume that hangs holds one thread, not one more with every interval, and keeps mysqld from being measured in no way.
func TestAHungVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		var looks atomic.Int32
		release := make(chan struct{})
		a := start(t, f, func() (Use, error) {
			if looks.Add(1) > 1 {
				<-release
			}
			return room()
		})
		time.Sleep(20 * interval)
		synctest.Wait()
		if n := looks.Load(); n != 2 {
			t.Errorf("%d looks at a volume that hangs at the second", n)
		}
		got := scrape(t, a)
		if _, there := got["sidecar_volume_size_bytes"]; there || got["sidecar_mysql_measured"] != 1 {
			t.Errorf("%v", got)
		}
		if use := a.VolumeUse(); use != nil {
			t.Errorf("what was seen of it long ago is reported: %+v", use)
		}
		close(release)
		time.Sleep(2 * interval)
		synctest.Wait()
		if got := scrape(t, a); got["sidecar_volume_size_bytes"] != 100 {
			t.Error("a volume that works again is not told")
		}
		if use := a.VolumeUse(); use == nil || *use != (wire.VolumeUse{UsedBytes: 50, TotalBytes: 90}) {
			t.Errorf("reported is %+v, and df counts 50 of 90", use)
		}
	})
}

// TestAnOpenChangeIsReported: as long as mysqld is measured; what it was before that says nothing of now.
func TestAnOpenChangeIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		a := start(t, f, func() (Use, error) { return Use{}, nil })
		synctest.Wait()
		if rows := a.OpenChange(); rows == nil || *rows != 9 {
			t.Errorf("reported is %v, and it is 9", rows)
		}
		f.hangs.Store(true)
		time.Sleep(2 * staleAfter)
		if rows := a.OpenChange(); rows != nil {
			t.Errorf("mysqld does not answer, and its largest change is %d", *rows)
		}
	})
}

func TestAVolumeThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := scrape(t, start(t, &fake{}, func() (Use, error) { return Use{}, errors.New("input/output error") }))
		for name := range got {
			if strings.HasPrefix(name, "sidecar_volume") || strings.HasPrefix(name, "sidecar_binlog") {
				t.Errorf("%s is told", name)
			}
		}
	})
}

func TestLook(t *testing.T) {
	dir := t.TempDir()
	for name, bytes := range map[string]int{"binlog.000001": 10, "binlog.000002": 20, "binlog.index": 3, "relay-bin.000001": 40, "binlog.000003.tmp": 5} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use, err := Look(dir)
	if err != nil || use.Binlogs != 2 || use.BinlogBytes != 30 || use.Size < use.Used+use.Available || use.Used <= 0 || use.Available <= 0 {
		t.Errorf("%+v, %v", use, err)
	}
	if _, err := Look(filepath.Join(dir, "none")); err == nil {
		t.Error("a data directory that is not there has room")
	}
}

// Every series is on the page, with its labels, and the page has no other one.
func TestSeriesPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, found := range regexp.MustCompile("(?m)^\\| `(sidecar_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		documented[found[1]] = true
	}
	descs := make(chan *prometheus.Desc, 100)
	(&Agent{}).Describe(descs)
	close(descs)
	declared := map[string]bool{}
	for d := range descs {
		declared[regexp.MustCompile(`fqName: "([a-z_]+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	if got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(declared)); !slices.Equal(got, want) {
		t.Errorf("docs/monitoring.md has\n%s\nthe code\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
