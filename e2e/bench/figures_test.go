// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

func named(t *testing.T, name string) benchCase {
	t.Helper()
	c, err := casesNamed(name)
	if err != nil || len(c) != 1 {
		t.Fatalf("case %s: %v, %v", name, c, err)
	}
	return c[0]
}

func TestFigures(t *testing.T) {
	var f figures
	f.add(named(t, "node-cut"), stage.DefaultSpec("bench"), outcome{commit: "abc", samples: []sample{
		{Seconds: 22.1, MergedSeconds: 22, Acked: 100, Lost: 1, Reported: 2, MarginSeconds: 3, CommitsPerSecond: 240},
		{Seconds: 21.5, MergedSeconds: 21.4, Acked: 200, Overlaps: 1, MarginSeconds: 2.5, CommitsPerSecond: 238},
		{Seconds: 24, MergedSeconds: 23.9, Acked: 300, ByServers: 2, MarginSeconds: 4, CommitsPerSecond: 239},
	}})
	want := row{
		Name: "node-cut", Runs: 3, P50Seconds: 22.1, P99Seconds: 24, MaxSeconds: 24, MergedP50Seconds: 22, MergedP99Seconds: 23.9,
		CommitsPerSecond: 238, AckedWrites: 600, AckedLost: 1, LossReported: 2, WriterOverlaps: 1, MinFenceMarginSeconds: 2.5, LeaseSeconds: 20, OverlapsByServers: 2,
		Targets: []target{{Figure: figureMax, Limit: 25, Got: 24, Met: true}}, Commit: "abc",
	}
	if diff := cmp.Diff([]row{want}, f.Cases, cmpopts.IgnoreFields(row{}, "MeasuredAt", "Samples")); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

func TestWithinTarget(t *testing.T) {
	fine := sample{Seconds: 0.2, CommitsPerSecond: 240}
	for name, tt := range map[string]struct {
		reason string
		with   sample
		failed error
		none   bool
		want   bool
	}{
		"fine":             {reason: "every target is met", with: fine, want: true},
		"slow at the end":  {reason: "p99 of so few runs is the worst", with: sample{Seconds: 1.1}},
		"lost a row":       {reason: "a planned failover loses nothing", with: sample{Seconds: 0.2, Lost: 1}},
		"two writers":      {reason: "never", with: sample{Seconds: 0.2, Overlaps: 1}},
		"by the servers":   {reason: "nor by their own timestamps", with: sample{Seconds: 0.2, ByServers: 1}},
		"a run that broke": {reason: "what was not measured cannot be within", with: fine, failed: errors.New("no")},
		"no run":           {reason: "nor what never ran", none: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome{samples: []sample{fine, fine, tt.with}}
			if tt.failed != nil {
				o.errs = []error{tt.failed}
			}
			if tt.none {
				o.samples = nil
			}
			var f figures
			f.add(named(t, "planned"), v1alpha1.MysqlFailoverGroupSpec{}, o)
			if got := f.Cases[0].WithinTarget; got != tt.want {
				t.Errorf("%s: within = %t, targets %+v", tt.reason, got, f.Cases[0].Targets)
			}
			var out bytes.Buffer
			f.print(&out)
			if got := !strings.Contains(out.String(), "MISSED"); got != tt.want {
				t.Errorf("table:\n%s", out.String())
			}
		})
	}
}

// Other programs read these names.
func TestFormIsAsPromised(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "bench.json")
	var f figures
	f.add(named(t, "node-kill"), v1alpha1.MysqlFailoverGroupSpec{}, outcome{samples: []sample{{Seconds: 1}}})
	f.add(named(t, "planned"), v1alpha1.MysqlFailoverGroupSpec{}, outcome{errs: []error{errors.New("nothing was measured")}})
	if err := f.write(path); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine map[string]any
		Cases   []map[string]any
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	promised := []string{
		"ackedLost", "ackedWrites", "lossReported", "minFenceMarginSeconds", "name", "p50Seconds", "p99Seconds", "runs", "writerOverlaps",
	}
	have := slices.Sorted(maps.Keys(got.Cases[0]))
	for _, name := range promised {
		if !slices.Contains(have, name) {
			t.Errorf("field %s is missing in %v", name, have)
		}
	}
	if got.Machine["cpus"] == nil || got.Cases[0]["runs"] != 1.0 {
		t.Errorf("machine = %v, runs = %v", got.Machine, got.Cases[0]["runs"])
	}
}

// With MERGE=1 a case takes the place of its earlier figures, and the others stay as they were measured.
func TestMerge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.json")
	var first, second figures
	if err := second.read(path); err != nil {
		t.Fatalf("a file that is not there: %v", err)
	}
	one := outcome{commit: "old", samples: []sample{{Seconds: 1}}}
	first.add(named(t, "planned"), v1alpha1.MysqlFailoverGroupSpec{}, one)
	first.add(named(t, "drain"), v1alpha1.MysqlFailoverGroupSpec{}, one)
	if err := first.write(path); err != nil {
		t.Fatal(err)
	}
	if err := second.read(path); err != nil {
		t.Fatal(err)
	}
	second.add(named(t, "planned"), v1alpha1.MysqlFailoverGroupSpec{}, outcome{commit: "new", samples: []sample{{Seconds: 2}}})
	second.add(named(t, "node-kill"), v1alpha1.MysqlFailoverGroupSpec{}, one)
	var got []string
	for _, r := range second.Cases {
		got = append(got, r.Name+" "+r.Commit)
	}
	if diff := cmp.Diff([]string{"planned new", "drain old", "node-kill old"}, got); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
}

func TestPercentile(t *testing.T) {
	ten := []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	for p, want := range map[float64]float64{50: 5, 99: 10, 100: 10, 1: 1} {
		if got := percentile(ten, p); got != want {
			t.Errorf("percentile %v = %v, want %v", p, got, want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("percentile of nothing = %v", got)
	}
}

func TestCasesNamed(t *testing.T) {
	got, err := casesNamed("drain, planned")
	if err != nil || len(got) != 2 || got[0].Name != "drain" || got[1].Name != "planned" {
		t.Errorf("cases = %v, %v", got, err)
	}
	if _, err := casesNamed("drain,nonsense"); err == nil {
		t.Error("a case that does not exist was accepted")
	}
	all, err := casesNamed("")
	if err != nil || len(all) != 9 {
		t.Errorf("%d cases, %v", len(all), err)
	}
	for _, c := range all {
		if c.Break == nil || c.runs == 0 || c.targets == nil {
			t.Errorf("case %s is not whole: %+v", c.Name, c)
		}
	}
}

// What the host took is a share of all time, also of that in which nothing wanted to run.
func TestStolenUntil(t *testing.T) {
	start := processors{all: 1000, stolen: 100}
	for _, c := range []struct {
		name string
		now  processors
		want float64
	}{
		{"a fifth was taken", processors{all: 1010, stolen: 102}, 20},
		{"nothing was taken", processors{all: 1010, stolen: 100}, 0},
		{"no time has passed", start, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := start.stolenUntil(c.now); got != c.want {
				t.Errorf("%v percent stolen, want %v", got, c.want)
			}
		})
	}
}

func TestReadProcessors(t *testing.T) {
	got, err := readProcessors()
	if err != nil {
		t.Fatal(err)
	}
	if got.all <= 0 || got.stolen < 0 || got.stolen > got.all {
		t.Errorf("%+v is not the time of a machine that runs", got)
	}
}
