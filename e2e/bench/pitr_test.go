// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// costs is a comparison in which each pair has these commits a second, live and frozen.
func costs(pairs ...[2]float64) *pitrCost {
	c := &pitrCost{}
	for n, p := range pairs {
		c.Samples = append(c.Samples, pitrPhaseSample{Pair: n + 1, Archiver: archiverLive, CommitsPerSecond: p[0]},
			pitrPhaseSample{Pair: n + 1, Archiver: archiverFrozen, CommitsPerSecond: p[1]})
	}
	return c
}

func TestTheCostOfAnArchiver(t *testing.T) {
	for _, c := range []struct {
		name    string
		cost    *pitrCost
		verdict verdict
	}{
		{"the same", costs([2]float64{1000, 1000}, [2]float64{1010, 1005}, [2]float64{990, 1000}, [2]float64{1000, 1000}, [2]float64{1005, 1000}), verdictWithin},
		{"a tenth slower", costs([2]float64{900, 1000}, [2]float64{905, 1005}, [2]float64{890, 1000}, [2]float64{900, 1000}, [2]float64{910, 1000}), verdictMissed},
		{"noise", costs([2]float64{900, 1000}, [2]float64{1100, 1000}, [2]float64{800, 1000}, [2]float64{1200, 1000}, [2]float64{950, 1000}), verdictOpen},
		{"a table that grows", costs([2]float64{500, 505}, [2]float64{805, 800}, [2]float64{1000, 1010}, [2]float64{1300, 1290}, [2]float64{1600, 1600}), verdictWithin},
		{"too few", costs([2]float64{1000, 1000}, [2]float64{1000, 1000}), verdictOpen},
		{"none", &pitrCost{}, verdictOpen},
	} {
		against := c.cost.judge()
		if c.cost.Verdict != c.verdict || (len(against) == 0) != (c.verdict == verdictWithin) {
			t.Errorf("%s: %s (%+v), against it %v", c.name, c.cost.Verdict, c.cost.Interval, against)
		}
	}
	half := costs([2]float64{1, 1})
	half.Samples = append(half.Samples, pitrPhaseSample{Pair: 2, Archiver: archiverLive, CommitsPerSecond: 7})
	if pairs := half.pairsOfPhases(); len(pairs) != 1 {
		t.Errorf("half a pair is compared: %v", pairs)
	}
}

func TestTheAgeOfAPointIsJudged(t *testing.T) {
	good := func() *pitrPoint {
		p := &pitrPoint{LimitSeconds: 15, RowsAsked: 240, CommitsPerSecond: 239, AllArchived: true}
		var looks []pointLook
		for i := range 200 {
			looks = append(looks, pointLook{age: float64(i % 13), archiver: 30, sidecar: 20, uploads: int64(i / 10)})
		}
		p.sum(looks)
		return p
	}
	if p := good(); len(p.judge()) > 0 || p.MaxSeconds != 12 || p.P50Seconds != 6 || p.Looks != 200 || p.Uploads != 19 || p.Archiver.EndMiB != 30 {
		t.Errorf("%+v: %v", p, p.judge())
	}
	for says, spoil := range map[string]func(*pitrPoint){
		"old":            func(p *pitrPoint) { p.P99Seconds = 15.1 },
		"no status":      func(p *pitrPoint) { p.Unread = 21 },
		"refused":        func(p *pitrPoint) { p.Failed = 1 },
		"started again":  func(p *pitrPoint) { p.Restarts = 1 },
		"gaps":           func(p *pitrPoint) { p.Gaps = 1 },
		"did not hold":   func(p *pitrPoint) { p.AllArchived = false },
		"instead of 240": func(p *pitrPoint) { p.CommitsPerSecond = 200 },
		"the archiver":   func(p *pitrPoint) { p.Archiver.Flat = false },
		"the sidecar":    func(p *pitrPoint) { p.Sidecar.Flat = false },
	} {
		p := good()
		spoil(p)
		if against := p.judge(); len(against) != 1 || !strings.Contains(against[0], says) {
			t.Errorf("%s: %v", says, against)
		}
	}
}

func TestMemoryThatGrowsIsNotFlat(t *testing.T) {
	var grows, flat []float64
	for i := range 100 {
		grows, flat = append(grows, 30+float64(i)/4), append(flat, 30+float64(i%5))
	}
	if m := memoryOf(grows); m.Flat || m.StartMiB > m.EndMiB || m.MaxMiB != 54.75 {
		t.Errorf("%+v", m)
	}
	if m := memoryOf(flat); !m.Flat {
		t.Errorf("%+v", m)
	}
	if m := memoryOf([]float64{1, 2}); m.Flat {
		t.Errorf("of two looks nothing can be said: %+v", m)
	}
}

func TestRowsBetweenTwoMoments(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	l := &pitrLoad{writers: make([]pitrWriter, 2)}
	for i := range 10 {
		l.writers[i%2].marks = append(l.writers[i%2].marks, commitMark{at: at(i), took: float32(i)})
	}
	if rate, p99 := l.between(at(2), at(6)); rate != 1 || p99 != 5 {
		t.Errorf("%v rows a second, the slowest took %v", rate, p99)
	}
}

func TestPITRPartsAndFiles(t *testing.T) {
	if parts, err := pitrPartsNamed(""); err != nil || len(parts) != 2 {
		t.Errorf("%v, %v", parts, err)
	}
	if parts, err := pitrPartsNamed("point"); err != nil || len(parts) != 1 {
		t.Errorf("%v, %v", parts, err)
	}
	if _, err := pitrPartsNamed("nothing"); err == nil {
		t.Error("an unknown part is taken")
	}
	file := filepath.Join(t.TempDir(), "f.json")
	f := pitrFigures{Cost: costs([2]float64{1, 1}), FailedParts: []string{"it broke"}}
	if f.judge(); f.WithinTarget || len(f.Against) != 3 {
		t.Errorf("%v", f.Against)
	}
	if err := writeJSON(file, f); err != nil {
		t.Fatal(err)
	}
	var again pitrFigures
	if err := again.read(file); err != nil || again.Cost == nil || len(again.Cost.Samples) != 2 || len(again.FailedParts) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	if err := again.read(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}
