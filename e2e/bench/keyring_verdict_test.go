// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Each row spoils one thing of figures that are within their targets, and the figures say what.
func TestKeyringVerdict(t *testing.T) {
	other := origin{Commit: "def"}
	fine := []float64{0.21, 0.2, 0.21, 0.22, 0.21}
	for name, tt := range map[string]struct {
		reason string
		change func(*keyringFigures)
		// against is in what is said against the figures; none: they are within their targets.
		against string
	}{
		"fine": {"every part is there and within its target", func(*keyringFigures) {}, ""},
		"sealed too late": {"four minutes", func(f *keyringFigures) {
			f.BringUp.Target = limited("x", sealedLimit, 241)
		}, "sealed too late"},
		"no bring-up": {"what was not measured is not within", func(f *keyringFigures) {
			f.BringUp = nil
		}, "no bring-up"},
		"no rotation":   {"", func(f *keyringFigures) { f.Rotation = nil }, "no rotation"},
		"no throughput": {"", func(f *keyringFigures) { f.Throughput = nil }, "throughput: not measured"},
		"no emergency": {"planned alone is not enough", func(f *keyringFigures) {
			f.Failovers = f.Failovers[:1]
		}, "no emergency"},
		"no planned": {"nor is an emergency", func(f *keyringFigures) {
			f.Failovers = f.Failovers[1:]
		}, "planned: not measured"},
		"a part that broke": {"", func(f *keyringFigures) { f.FailedParts = []string{"round: no"} }, "round: no"},
		"slower by a fifth": {"ten percent", func(f *keyringFigures) {
			f.put(planned(nil, 0.25, 0.24, 0.26, 0.25, 0.25))
		}, "planned: MISSED"},
		"too noisy": {"it may be slower by a fifth", func(f *keyringFigures) {
			f.put(planned(nil, 0.16, 0.21, 0.26, 0.2, 0.25))
		}, "planned: inconclusive (as seen: within)"},
		"noisy and seen slower": {"it may be as fast", func(f *keyringFigures) {
			f.put(planned(nil, 0.16, 0.25, 0.26, 0.2, 0.25))
		}, "planned: inconclusive (as seen: MISSED)"},
		"faster": {"no limit downwards", func(f *keyringFigures) {
			f.put(planned(nil, 0.1, 0.1, 0.1, 0.1, 0.1))
		}, ""},
		"nothing to compare": {"a ratio of nothing proves nothing", func(f *keyringFigures) {
			f.put(both(partPlanned, outcome{table: proofs[armPlain]}, moves(armEncrypted, fine...)))
		}, "planned: inconclusive: 0 and 20 samples"},
		"a run that failed": {"", func(f *keyringFigures) {
			f.put(planned(func(o *outcome) { o.errs = []error{errors.New("no")} }, fine...))
		}, "MISSED: 1 runs failed"},
		"two writers": {"", func(f *keyringFigures) {
			f.put(planned(func(o *outcome) { o.samples[3].Overlaps = 1 }, fine...))
		}, "MISSED: two sites"},
		"a planned one that lost": {"a planned failover loses nothing", func(f *keyringFigures) {
			f.put(planned(func(o *outcome) { o.samples[3].Lost = 3 }, fine...))
		}, "MISSED: 3 acknowledged rows"},
		"one run": {"one run shows no noise", func(f *keyringFigures) {
			f.put(planned(nil, 0.2))
		}, "planned: inconclusive: 20 and 4 samples in 1 runs"},
		"an emergency too few": {"", func(f *keyringFigures) {
			f.put(both(partForceDelete, emergencies(armPlain, 5, 5, 5, 5, 5), emergencies(armEncrypted, 5, 5, 5, 5)))
		}, "pod-force-delete: inconclusive: 5 and 4 samples in 4 runs"},
		"a silent operator": {"its measure is what is judged", func(f *keyringFigures) {
			f.put(planned(func(o *outcome) { o.samples[7].OperatorSeconds = nil }, fine...))
		}, "planned: inconclusive: 20 and 19 samples in 5 runs"},
		"a slower emergency": {"clients say it", func(f *keyringFigures) {
			f.put(both(partForceDelete, emergencies(armPlain, 5, 5, 5, 5, 5), emergencies(armEncrypted, 6, 6, 6, 6, 6)))
		}, "pod-force-delete: MISSED"},
		"too little load": {"", func(f *keyringFigures) {
			f.Throughput.Samples = loads(leastRuns - 1)
		}, "throughput: 4 and 4 runs"},
		"load of another commit": {"parts of two programs", func(f *keyringFigures) {
			f.Throughput.origin = other
		}, `throughput: of commit "def", the last run of "abc"`},
		"round of another":     {"", func(f *keyringFigures) { f.BringUp.origin = other }, "round, bring-up: of commit"},
		"rotation of another":  {"", func(f *keyringFigures) { f.Rotation.origin = other }, "round, rotation: of commit"},
		"emergency of another": {"", func(f *keyringFigures) { f.Failovers[1].origin = other }, "pod-force-delete: of commit"},
		"load in the clear": {"nothing was compared", func(f *keyringFigures) {
			f.Throughput.EncryptedTable.Encryption = "N"
		}, `throughput: group encrypted: the tablespace "app/writes"`},
		"load without proof": {"nobody looked", func(f *keyringFigures) {
			f.Throughput.EncryptedTable = tableProof{}
		}, "throughput: group encrypted"},
		"moves in the clear": {"", func(f *keyringFigures) {
			f.put(planned(func(o *outcome) { o.table.Encryption = "N" }, fine...))
		}, "MISSED: group encrypted"},
		"logs in the clear": {"a table is not all", func(f *keyringFigures) {
			f.put(planned(func(o *outcome) { o.table.FullCoverage = false }, fine...))
		}, "MISSED: group encrypted"},
		"plain is encrypted": {"nothing to compare with", func(f *keyringFigures) {
			f.Throughput.PlainTable.Encryption = "Y"
		}, "throughput: group plain"},
		"mysqld-dead counts": {"an emergency too", func(f *keyringFigures) { f.Failovers[1].Case = partMysqldDead }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := someFigures(t)
			if !f.WithinTarget {
				t.Fatalf("what is not spoiled is not within: %q", f.Against)
			}
			tt.change(f)
			f.judge()
			said := strings.Join(f.Against, "\n")
			if f.WithinTarget != (tt.against == "") || !strings.Contains(said, tt.against) || tt.against == "" && said != "" {
				t.Errorf("%s: within = %t, against it %q, want %q", tt.reason, f.WithinTarget, f.Against, tt.against)
			}
			if tt.against != "" && len(f.Against) != 1 {
				t.Errorf("one thing was spoiled, and this is said: %q", f.Against)
			}
			var out bytes.Buffer
			f.print(&out)
			if !strings.Contains(out.String(), tt.against) || strings.Contains(out.String(), "not within") != (tt.against != "") {
				t.Errorf("the table does not say so: %s", out.String())
			}
		})
	}
}

func TestNothingMeetsNoTarget(t *testing.T) {
	c := both(partPlanned, outcome{table: proofs[armPlain]}, moves(armEncrypted, 0.2, 0.2, 0.2, 0.2, 0.2))
	if c.Target.Met || c.Interval != nil || c.WithinTarget {
		t.Errorf("a ratio of nothing meets a target: %+v, interval %+v, within %t", c.Target, c.Interval, c.WithinTarget)
	}
}

// The row of a case has the ratio that is judged, its interval and the noise of either group.
func TestComparisonIsPrinted(t *testing.T) {
	var out bytes.Buffer
	c := planned(nil, 0.16, 0.21, 0.26, 0.2, 0.25)
	c.print(&out)
	for _, want := range []string{
		"pause, planned (medians of 20 and 20)", "clients' 0.300 s plain, 0.300 s encrypted, ratio 1.000",
		"operator's 0.210 s and 0.210 s, ratio 1.000",
		"stolen 2.0 % and 2.0 %", "1.000 (95 %: ", " of 1.10\tinconclusive (as seen: within)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
}

// A part that failed counts against a file until it is measured again, whatever is measured meanwhile.
func TestFailedPartIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	f := someFigures(t)
	f.FailedParts = []string{"round: no", "planned: no"}
	if err := writeJSON(path, f); err != nil {
		t.Fatal(err)
	}
	var again keyringFigures
	if err := again.read(path); err != nil {
		t.Fatal(err)
	}
	again.forgive(partPlanned)
	again.judge()
	if again.WithinTarget || len(again.Against) != 1 || again.Against[0] != "round: no" {
		t.Errorf("within = %t, against it %q; want what is known of round", again.WithinTarget, again.Against)
	}
	again.forgive(partRound)
	again.judge()
	if !again.WithinTarget {
		t.Errorf("measured again, and still against it: %q", again.Against)
	}
}

func TestRunsOf(t *testing.T) {
	for _, part := range keyringParts()[1:] {
		k := &keyringBench{bench: &bench{}}
		if n := k.runsOf(part); n < leastRuns {
			t.Errorf("%s is measured %d times, which is too few to be judged", part, n)
		}
		if k.options.runs = 7; k.runsOf(part) != 7 {
			t.Errorf("%s is measured %d times, and 7 were asked for", part, k.runsOf(part))
		}
	}
}
