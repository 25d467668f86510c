// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

func TestSumUp(t *testing.T) {
	at := time.Unix(1000, 0)
	f := &field{bench: &bench{}, size: size{groups: 1000, sites: 3}}
	before := reading{at: at, operator: usage{cpu: 10 * time.Second}, writes: map[string]float64{"pods": 3000, "leases": 10, "events": 5}}
	after := reading{
		at: at.Add(100 * time.Second), operator: usage{cpu: 60 * time.Second, peakMiB: 500}, queries: 150_000, pushes: 150_000,
		writes: map[string]float64{"pods": 3000, "leases": 60, "events": 25, "mysqlfailovergroups/status": 5},
	}
	p := f.sumUp(before, after, observations{ages: []float64{0.5, 1, 2.5}, rssMiB: 400})
	if p.CPUCores != 0.5 || p.APIWritesPerSecond != 0.25 || p.LeaseWritesPerSecond != 0.5 || p.QueriesPerSecond != 1500 || p.DecisionAgeP99Seconds != 2.5 {
		t.Errorf("point %+v", p)
	}
	if diff := cmp.Diff(map[string]float64{"events": 20, "mysqlfailovergroups/status": 5}, p.WritesByResource); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if p.Targets[0].Met || !p.Targets[1].Met || !p.Targets[2].Met {
		t.Errorf("targets %+v", p.Targets)
	}
}

// Other programs read these names.
func TestFormIsAsPromised(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "scale.json")
	f := figures{Points: []point{{Groups: 1000, Sites: 3}}}
	if err := f.write(path); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Points []map[string]any }
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"groups", "sites", "cpuCores", "rssMiB", "decisionAgeP99Seconds", "apiWritesPerSecond"} {
		if _, ok := got.Points[0][name]; !ok {
			t.Errorf("field %s is missing", name)
		}
	}
}

func TestGrowth(t *testing.T) {
	curve := func(cores ...float64) *figures {
		f := &figures{}
		for i, c := range cores {
			f.Points = append(f.Points, point{Groups: int(math.Pow10(i + 1)), Sites: 3, CPUCores: c})
		}
		f.Points = append(f.Points, point{Groups: 1, Sites: 16, CPUCores: 0.01})
		return f
	}
	if g, ok := curve(0.01, 0.1, 1).growth(); !ok || round(g) != 1 {
		t.Errorf("a straight line grows by %v, %t", g, ok)
	}
	if g, ok := curve(0.01, 0.1, 1.9).growth(); !ok || round(g) != 2 {
		t.Errorf("one that bends upwards grows by %v, %t", g, ok)
	}
	if _, ok := curve(0.01, 0.1).growth(); ok {
		t.Error("two points make no curve")
	}
	var out bytes.Buffer
	curve(0.01, 0.1, 1).print(&out)
	if !strings.Contains(out.String(), "1.00 times") {
		t.Errorf("table:\n%s", out.String())
	}
}

func TestCountWrites(t *testing.T) {
	got := countWrites(`# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PUT",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 99
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 1e+01
apiserver_request_total{code="200",component="apiserver",dry_run="",group="x",resource="mysqlfailovergroups",scope="resource",subresource="status",verb="APPLY",version="v1"} 4
apiserver_request_total_other{verb="PUT"} 5
`)
	want := map[string]float64{"pods/status": 3, "events": 10, "mysqlfailovergroups/status": 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestUsage(t *testing.T) {
	line := "77 (a (b) c) S 1 77 77 0 -1 4194560 1 0 0 0 250 150 0 0 20 0 9 0 100 1 1"
	if u, err := parseStat(line); err != nil || u.cpu != 4*time.Second {
		t.Errorf("usage %+v, %v", u, err)
	}
	if _, err := parseStat("77 (x) S 1"); err == nil {
		t.Error("a line that is cut off was read")
	}
	if u, err := usageOf(os.Getpid()); err != nil || u.rssMiB <= 0 || u.peakMiB < u.rssMiB {
		t.Errorf("this process: %+v, %v", u, err)
	}
}

func TestParseSizes(t *testing.T) {
	got, err := parseSizes("10x3, 1x16")
	if err != nil || len(got) != 2 || got[1] != (size{groups: 1, sites: 16}) {
		t.Errorf("sizes %v, %v", got, err)
	}
	for _, bad := range []string{"", "10", "x3", "0x3", "10x1", "1x17", "30000x3"} {
		if _, err := parseSizes(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestIsWhole(t *testing.T) {
	group := func(states ...v1alpha1.SiteState) wire.GroupStatus {
		var g wire.GroupStatus
		for _, s := range states {
			g.Sites = append(g.Sites, wire.SiteStatus{State: string(s)})
		}
		return g
	}
	if !isWhole(group(v1alpha1.SiteReplica, v1alpha1.SitePrimary, v1alpha1.SiteReplica)) {
		t.Error("a whole group is not")
	}
	for _, g := range []wire.GroupStatus{
		group(), group(v1alpha1.SiteReplica, v1alpha1.SiteReplica), group(v1alpha1.SitePrimary, v1alpha1.SiteUnreachable),
		group(v1alpha1.SitePrimary, v1alpha1.SitePrimary),
	} {
		if isWhole(g) {
			t.Errorf("%+v is whole", g.Sites)
		}
	}
}

func TestBackupFigures(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	mb := func(ordered, started, finished int, phase v1alpha1.BackupPhase) v1alpha1.MysqlBackup {
		b := v1alpha1.MysqlBackup{}
		b.CreationTimestamp = metav1.NewTime(at.Add(time.Duration(ordered) * time.Second))
		b.Status.Phase = phase
		for second, into := range map[int]**metav1.Time{started: &b.Status.StartedAt, finished: &b.Status.FinishedAt} {
			if second > 0 {
				moment := metav1.NewTime(at.Add(time.Duration(second) * time.Second))
				*into = &moment
			}
		}
		return b
	}
	b := &backupFigures{AtOnce: 2}
	b.count([]v1alpha1.MysqlBackup{mb(1, 2, 0, v1alpha1.BackupRunning), mb(1, 2, 0, v1alpha1.BackupRunning), mb(1, 0, 0, v1alpha1.BackupPending)})
	all := []v1alpha1.MysqlBackup{mb(1, 2, 9, v1alpha1.BackupCompleted), mb(30, 40, 50, v1alpha1.BackupCompleted), mb(70, 71, 90, v1alpha1.BackupFailed)}
	b.count(all)
	b.sumUp(all, at)
	if b.MostAtOnce != 2 || b.Completed != 2 || b.Failed != 1 || b.SpreadSeconds != 69 || b.MostInAMinute != 2 || b.WaitP99Seconds != 10 || b.AllSeconds != 90 {
		t.Errorf("%+v", b)
	}
	p := &point{Backups: b, DecisionAgeP99Seconds: 2}
	p.judgeBackups(3)
	missed := 0
	for _, target := range p.Targets {
		if !target.Met {
			missed++
		}
	}
	if missed != 2 { // one was not completed, and decisions were two seconds older than without
		t.Errorf("%+v", p.Targets)
	}
}
