// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFigures(t *testing.T) {
	var f figures
	f.add("node-cut", []sample{
		{seconds: 22.1, acked: 100, lost: 1, reported: 2, margin: 3 * time.Second},
		{seconds: 21.5, acked: 200, over: 1, margin: 2500 * time.Millisecond},
		{seconds: 25, acked: 300, margin: 4 * time.Second},
	})
	want := row{
		Name: "node-cut", Runs: 3, P50Seconds: 22.1, P99Seconds: 25, AckedWrites: 600, AckedLost: 1, LossReported: 2,
		WriterOverlaps: 1, MinFenceMarginSeconds: 2.5,
	}
	if diff := cmp.Diff([]row{want}, f.Cases); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

// Other programs read these names.
func TestFormIsAsPromised(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "bench.json")
	var f figures
	f.add("node-kill", []sample{{seconds: 1}})
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
	want := []string{
		"ackedLost", "ackedWrites", "lossReported", "minFenceMarginSeconds", "name", "p50Seconds", "p99Seconds", "runs", "writerOverlaps",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got.Cases[0]))); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if got.Machine["cpus"] == nil {
		t.Errorf("machine = %v", got.Machine)
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
