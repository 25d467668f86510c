// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func held(name string, values ...float64) []reading {
	var all []reading
	for i, v := range values {
		all = append(all, reading{Moves: i * readEvery, Held: map[string]float64{name: v}})
	}
	return all
}

func TestGrown(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		series []reading
		flat   bool
	}{
		"noise":         {"the collector comes and goes", held("operator memory MiB", 40, 60, 75, 58, 70, 61, 66), true},
		"leak":          {"a connection for each move", held(kindConnections, 8, 8, 14, 20, 26, 32, 38), false},
		"goroutines":    {"one for each move", held("sidecar east goroutines", 30, 30, 36, 42, 48, 54, 60), false},
		"warming up":    {"the first reading does not count", held("operator goroutines", 10, 80, 82, 79, 81, 80, 80), true},
		"less than was": {"what shrinks does not grow", held("operator open files", 90, 80, 70, 60, 50, 40, 30), true},
	} {
		t.Run(name, func(t *testing.T) {
			got := grown(tt.series)
			if len(got) != 1 || got[0].Flat != tt.flat {
				t.Errorf("%s: %+v, want flat %t", tt.reason, got, tt.flat)
			}
		})
	}
	if got := grown(held("operator goroutines", 1)); got != nil {
		t.Errorf("one reading shows nothing: %+v", got)
	}
}

func TestSwitchoverFigures(t *testing.T) {
	b := &bench{commit: "abc"}
	fine := []sample{{Seconds: 0.2, CommitsPerSecond: 240}}
	flat := held("operator goroutines", 50, 50, 50, 50)
	if got := b.sumUp(named(t, "planned"), fine, flat, nil); !got.WithinTarget || !got.Flat {
		t.Errorf("all is well: %+v", got)
	}
	if got := b.sumUp(named(t, "planned"), fine, held("operator goroutines", 50, 50, 90, 150), nil); got.WithinTarget {
		t.Error("something grew, and that is within the target")
	}
	if got := b.sumUp(named(t, "planned"), fine, nil, nil); got.WithinTarget {
		t.Error("nothing was read, and that is within the target")
	}
	broken := b.sumUp(named(t, "planned"), fine, flat, errors.New("the third move was refused"))
	if broken.WithinTarget {
		t.Error("a row that broke is within the target")
	}
	raw, err := json.Marshal(broken)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"moves", "succeeded", "p50Seconds", "p99Seconds", "ackedLost", "growth", "flat", "withinTarget", "machine"} {
		if _, ok := got[name]; !ok {
			t.Errorf("field %s is missing", name)
		}
	}
}

func TestTakeProcess(t *testing.T) {
	text := "# HELP go_goroutines x\ngo_goroutines 42\nprocess_resident_memory_bytes 1.048576e+08\nprocess_open_fds 17\n"
	got := map[string]float64{}
	if err := takeProcess(got, "operator", text); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"operator goroutines": 42, "operator memory MiB": 100, "operator open files": 17}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if err := takeProcess(got, "operator", "go_goroutines 1\n"); err == nil {
		t.Error("series are missing, and that is no error")
	}
}
