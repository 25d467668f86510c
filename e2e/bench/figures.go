// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// figures is the whole output. The fields of its form are fixed: other programs read them. New ones may come.
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
	// P50Seconds and P99Seconds are of the clients' pause: from the last row acknowledged before to the first after, on
	// the connection that waited longest. MaxSeconds is the worst run.
	P50Seconds float64 `json:"p50Seconds"`
	P99Seconds float64 `json:"p99Seconds"`
	MaxSeconds float64 `json:"maxSeconds"`
	// The same of all connections taken together, as if they were one client.
	MergedP50Seconds float64 `json:"mergedP50Seconds"`
	MergedP99Seconds float64 `json:"mergedP99Seconds"`
	// CommitsPerSecond is the least load that any run had before its fault.
	CommitsPerSecond float64 `json:"commitsPerSecond"`
	// AckedWrites counts acknowledged rows, AckedLost those of them that the active site lacks, LossReported what
	// status.failovers says was lost.
	AckedWrites  int `json:"ackedWrites"`
	AckedLost    int `json:"ackedLost"`
	LossReported int `json:"lossReported"`
	// WriterOverlaps counts moments at which two sites may have accepted commits.
	WriterOverlaps int `json:"writerOverlaps"`
	// OverlapsByServers are those by the timestamps in the servers' binary logs.
	OverlapsByServers int `json:"overlapsByServers"`
	// LeaseSeconds is spec.sidecar.leaseTimeout.
	LeaseSeconds float64 `json:"leaseSeconds"`
	// MinFenceMarginSeconds is the shortest time from the last commit of the old writer to the first of the new one.
	MinFenceMarginSeconds float64 `json:"minFenceMarginSeconds"`
	// StolenPercent is the median of the runs': how noisy the machine was.
	StolenPercent float64 `json:"stolenPercent"`

	Targets []target `json:"targets"`
	// WithinTarget is true if every target was met, no run failed, and no run proved the group wrong.
	WithinTarget bool      `json:"withinTarget"`
	FailedRuns   []string  `json:"failedRuns,omitempty"`
	Commit       string    `json:"commit"`
	MeasuredAt   time.Time `json:"measuredAt"`
	Samples      []sample  `json:"samples"`
}

// outcome is what came of the runs of a case.
type outcome struct {
	samples []sample
	errs    []error
	commit  string
	// table is what bench-keyring proved of the table under load.
	table tableProof
}

// add sums a case up, in place of what is there of it.
func (f *figures) add(c benchCase, spec v1alpha1.MysqlFailoverGroupSpec, o outcome) {
	r := row{
		Name: c.Name, Runs: len(o.samples), MinFenceMarginSeconds: math.Inf(1), CommitsPerSecond: math.Inf(1),
		Commit: o.commit, MeasuredAt: time.Now().UTC().Truncate(time.Second), Samples: o.samples,
	}
	var seconds, merged, stolen []float64
	for _, s := range o.samples {
		seconds, merged = append(seconds, s.Seconds), append(merged, s.MergedSeconds)
		stolen = append(stolen, s.StolenPercent)
		r.AckedWrites += s.Acked
		r.AckedLost += s.Lost
		r.LossReported += s.Reported
		r.WriterOverlaps += s.Overlaps
		r.OverlapsByServers += s.ByServers
		r.MinFenceMarginSeconds = min(r.MinFenceMarginSeconds, s.MarginSeconds)
		r.CommitsPerSecond = min(r.CommitsPerSecond, s.CommitsPerSecond)
	}
	if len(o.samples) == 0 {
		r.MinFenceMarginSeconds, r.CommitsPerSecond = 0, 0
	}
	r.P50Seconds, r.P99Seconds, r.MaxSeconds = percentile(seconds, 50), percentile(seconds, 99), percentile(seconds, 100)
	r.MergedP50Seconds, r.MergedP99Seconds = percentile(merged, 50), percentile(merged, 99)
	r.StolenPercent = percentile(stolen, 50)
	r.LeaseSeconds = leaseOf(spec).Seconds()
	for _, err := range o.errs {
		r.FailedRuns = append(r.FailedRuns, err.Error())
	}
	r.judge(c, spec)
	f.put(r)
}

// judge compares the figures with the targets.
func (r *row) judge(c benchCase, spec v1alpha1.MysqlFailoverGroupSpec) {
	r.Targets = c.targets(spec)
	if c.lossless {
		r.Targets = append(r.Targets, target{Figure: figureLost})
	}
	got := map[string]float64{
		figureP50: r.P50Seconds, figureP99: r.P99Seconds, figureMax: r.MaxSeconds, figureLost: float64(r.AckedLost),
	}
	r.WithinTarget = r.Runs > 0 && len(r.FailedRuns) == 0 && r.WriterOverlaps == 0 && r.OverlapsByServers == 0
	for i := range r.Targets {
		t := &r.Targets[i]
		t.Got = got[t.Figure]
		t.Met = t.Got <= t.Limit
		r.WithinTarget = r.WithinTarget && t.Met
	}
}

func (f *figures) put(r row) {
	if i := slices.IndexFunc(f.Cases, func(old row) bool { return old.Name == r.Name }); i >= 0 {
		f.Cases[i] = r
		return
	}
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

// print prints the table with the verdicts.
func (f *figures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nCASE\tRUNS\tP50\tP99\tMAX\tLOAD\tACKED\tLOST\tREPORTED\tOVERLAPS\tSTOLEN\tTARGETS\tVERDICT")
	for _, r := range f.Cases {
		var targets []string
		for _, t := range r.Targets {
			text := fmt.Sprintf("%s %v", strings.TrimSuffix(t.Figure, "Seconds"), t.Limit)
			if !t.Met {
				text += "!"
			}
			targets = append(targets, text)
		}
		verdict := "within"
		if !r.WithinTarget {
			verdict = "MISSED"
		}
		if len(r.FailedRuns) > 0 {
			verdict += fmt.Sprintf(", %d failed", len(r.FailedRuns))
		}
		if r.CommitsPerSecond < wantRate {
			verdict += fmt.Sprintf(", load below %.0f/s", wantRate)
		}
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.0f/s\t%d\t%d\t%d\t%d+%d\t%.0f %%\t%s\t%s\n", r.Name, r.Runs, r.P50Seconds, r.P99Seconds,
			r.MaxSeconds, r.CommitsPerSecond, r.AckedWrites, r.AckedLost, r.LossReported, r.WriterOverlaps, r.OverlapsByServers,
			r.StolenPercent, strings.Join(targets, ", "), verdict)
	}
	// A terminal that went away takes nothing along: the figures are in the file.
	_ = w.Flush()
}

// read takes over what a file says; one that is not there says nothing.
func (f *figures) read(path string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read figures: %w", err)
	}
	if err := json.Unmarshal(raw, f); err != nil {
		return fmt.Errorf("read figures of %s: %w", path, err)
	}
	return nil
}

func (f *figures) write(path string) error {
	f.Machine = thisMachine()
	if f.Cases == nil {
		f.Cases = []row{}
	}
	return writeJSON(path, f)
}

func writeJSON(path string, content any) error {
	raw, err := json.MarshalIndent(content, "", "  ")
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

// commitOf names the checkout that is measured, with a plus if it holds changes that are not committed.
func commitOf(ctx context.Context, repo string) string {
	git := func(args ...string) string {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", repo}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	commit := git("rev-parse", "--short=12", "HEAD")
	switch {
	case commit == "":
		return "unknown"
	case git("status", "--porcelain", "--untracked-files=no") != "":
		return commit + "+"
	}
	return commit
}
