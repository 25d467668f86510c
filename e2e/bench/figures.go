// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// figures is the whole output. Its form is fixed: other programs read it.
type figures struct {
	Machine machine `json:"machine"`
	Cases   []row   `json:"cases"`
}

type machine struct {
	CPUs      int       `json:"cpus"`
	Model     string    `json:"model"`
	MemoryMiB int64     `json:"memoryMiB"`
	Kernel    string    `json:"kernel"`
	Go        string    `json:"go"`
	When      time.Time `json:"when"`
}

// row are the figures of one case.
type row struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`
	// P50Seconds and P99Seconds are of the clients' pause: from the last row acknowledged before to the first after.
	P50Seconds float64 `json:"p50Seconds"`
	P99Seconds float64 `json:"p99Seconds"`
	// AckedWrites counts acknowledged rows, AckedLost those of them that the active site lacks, LossReported what
	// status.failovers says was lost.
	AckedWrites  int `json:"ackedWrites"`
	AckedLost    int `json:"ackedLost"`
	LossReported int `json:"lossReported"`
	// WriterOverlaps counts moments at which two sites may have accepted commits.
	WriterOverlaps int `json:"writerOverlaps"`
	// MinFenceMarginSeconds is the shortest time from the last commit of the old writer to the first of the new one.
	MinFenceMarginSeconds float64 `json:"minFenceMarginSeconds"`
}

func (f *figures) add(name string, samples []sample) {
	r := row{Name: name, Runs: len(samples), MinFenceMarginSeconds: math.Inf(1)}
	var seconds []float64
	for _, s := range samples {
		seconds = append(seconds, s.seconds)
		r.AckedWrites += s.acked
		r.AckedLost += s.lost
		r.LossReported += s.reported
		r.WriterOverlaps += s.over
		r.MinFenceMarginSeconds = min(r.MinFenceMarginSeconds, round(s.margin.Seconds()))
	}
	r.P50Seconds, r.P99Seconds = round(percentile(seconds, 50)), round(percentile(seconds, 99))
	f.Cases = append(f.Cases, r)
}

// percentile is the smallest value that p percent of the values do not exceed. With ten runs the 99th is the worst.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func round(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

func (f *figures) write(path string) error {
	f.Machine = thisMachine()
	if f.Cases == nil {
		f.Cases = []row{}
	}
	raw, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode figures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}

func thisMachine() machine {
	m := machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), When: time.Now().UTC().Truncate(time.Second)}
	if raw, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(raw))
	}
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.Model = field(string(raw), "model name")
	}
	if raw, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int64
		if _, err := fmt.Sscan(field(string(raw), "MemTotal"), &kib); err == nil {
			m.MemoryMiB = kib / 1024
		}
	}
	return m
}

// field finds the value of the first "name : value" line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
