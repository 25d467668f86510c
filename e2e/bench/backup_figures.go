// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// What backups are measured beside.
const (
	baselineDump = "mysqldump-zstd"
	baselineCopy = "copy"
)

// Limits of backups.
const (
	// logicalSlower is how much longer a Logical backup may take than mysqldump | zstd, physicalSlower a Physical one than a copy of the
	// directory, and restoreFaster how much faster a Physical restore must be than a Logical one.
	logicalSlower  = 1.2
	physicalSlower = 1.5
	restoreFaster  = 4.0
)

// backupFigures is the whole output of `make bench-backup`. Seconds and rates are medians; rates are of DirectoryBytes.
type backupFigures struct {
	Machine machine `json:"machine"`
	origin
	// SizeBytes are the rows, DirectoryBytes all files of the data directory.
	SizeBytes      int64 `json:"sizeBytes"`
	DirectoryBytes int64 `json:"directoryBytes"`
	// Baselines are mysqldump | zstd on the site itself, and a copy of its directory.
	Baselines []backupRow   `json:"baselines"`
	Cases     []backupRow   `json:"cases"`
	Ratios    []backupRatio `json:"ratios"`
	// WithinTarget is true if everything that was measured is.
	WithinTarget bool     `json:"withinTarget"`
	Against      []string `json:"against,omitempty"`
}

// backupRow is one way to back up.
type backupRow struct {
	Name      string                `json:"name"`
	Method    v1alpha1.BackupMethod `json:"method,omitempty"`
	Encrypted bool                  `json:"encrypted,omitempty"`
	Runs      int                   `json:"runs"`

	BackupSeconds     float64 `json:"backupSeconds"`
	BackupMBPerSecond float64 `json:"backupMBPerSecond"`
	// RestoreSeconds is until the first site has its data, WholeSeconds from the order until all sites have and the group is ready.
	RestoreSeconds     float64 `json:"restoreSeconds,omitempty"`
	RestoreMBPerSecond float64 `json:"restoreMBPerSecond,omitempty"`
	WholeSeconds       float64 `json:"wholeSeconds,omitempty"`
	StoredBytes        int64   `json:"storedBytes"`

	FailedRuns []string       `json:"failedRuns,omitempty"`
	Samples    []backupSample `json:"samples"`
}

// backupSample is one run.
type backupSample struct {
	Run int `json:"run"`
	// BackupSeconds is what status says, from the start of the attempt; OrderedSeconds is from the order until the backup was seen to be there.
	BackupSeconds  float64 `json:"backupSeconds"`
	OrderedSeconds float64 `json:"orderedSeconds,omitempty"`
	RestoreSeconds float64 `json:"restoreSeconds,omitempty"`
	WholeSeconds   float64 `json:"wholeSeconds,omitempty"`
	StoredBytes    int64   `json:"storedBytes"`
	// DigestsAlike is true if every row and every definition of the restored group is what was backed up.
	DigestsAlike  bool    `json:"digestsAlike,omitempty"`
	StolenPercent float64 `json:"stolenPercent,omitempty"`
}

// backupRatio compares two figures.
type backupRatio struct {
	Name  string  `json:"name"`
	Got   float64 `json:"got"`
	Limit float64 `json:"limit"`
	// AtLeast is true where Got must not be below the limit, instead of above it.
	AtLeast bool `json:"atLeast,omitempty"`
	Met     bool `json:"met"`
}

// begin forgets what is measured now.
func (f *backupFigures) begin(cases []backupCase) {
	f.Baselines = nil
	f.Cases = slices.DeleteFunc(f.Cases, func(r backupRow) bool {
		return slices.ContainsFunc(cases, func(c backupCase) bool { return c.name == r.Name })
	})
}

func (f *backupFigures) addBaseline(name string, s backupSample) {
	at := slices.IndexFunc(f.Baselines, func(r backupRow) bool { return r.Name == name })
	if at < 0 {
		f.Baselines = append(f.Baselines, backupRow{Name: name})
		at = len(f.Baselines) - 1
	}
	f.Baselines[at].Samples = append(f.Baselines[at].Samples, s)
}

// add notes a run. One that failed is no sample.
func (f *backupFigures) add(c backupCase, s backupSample, err error) {
	at := slices.IndexFunc(f.Cases, func(r backupRow) bool { return r.Name == c.name })
	if at < 0 {
		f.Cases = append(f.Cases, backupRow{Name: c.name, Method: c.method, Encrypted: c.encrypted})
		at = len(f.Cases) - 1
	}
	r := &f.Cases[at]
	if err != nil {
		r.FailedRuns = append(r.FailedRuns, err.Error())
		return
	}
	r.Samples = append(r.Samples, s)
}

func (r *backupRow) sum(bytes int64) {
	var backups, restores, whole, stored []float64
	for _, s := range r.Samples {
		backups, restores = append(backups, s.BackupSeconds), append(restores, s.RestoreSeconds)
		whole, stored = append(whole, s.WholeSeconds), append(stored, float64(s.StoredBytes))
	}
	r.Runs = len(r.Samples)
	r.BackupSeconds, r.RestoreSeconds, r.WholeSeconds = percentile(backups, 50), percentile(restores, 50), percentile(whole, 50)
	r.StoredBytes = int64(percentile(stored, 50))
	r.BackupMBPerSecond, r.RestoreMBPerSecond = rate(bytes, r.BackupSeconds), rate(bytes, r.RestoreSeconds)
}

// rate is in units of a million bytes, as disks and networks are sold.
func rate(bytes int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return round(float64(bytes) / 1e6 / seconds)
}

// judge sums everything up, and compares it with the limits.
func (f *backupFigures) judge() {
	f.Ratios, f.Against = nil, nil
	for i := range f.Baselines {
		f.Baselines[i].sum(f.DirectoryBytes)
	}
	for i := range f.Cases {
		r := &f.Cases[i]
		r.sum(f.DirectoryBytes)
		f.Against = append(f.Against, r.FailedRuns...)
		if r.Runs == 0 {
			f.Against = append(f.Against, r.Name+" was not measured")
			continue
		}
		base, limit := baselineDump, logicalSlower
		if r.Method == v1alpha1.BackupPhysical {
			base, limit = baselineCopy, physicalSlower
		}
		f.compare(r.Name+" / "+base, r.BackupSeconds, secondsOf(f.Baselines, base, false), limit, false)
	}
	for _, pair := range [][2]string{{"logical", "physical"}, {"logical-age", "physical-age"}} {
		slow, fast := secondsOf(f.Cases, pair[0], true), secondsOf(f.Cases, pair[1], true)
		if slow > 0 && fast > 0 {
			f.compare("restore of "+pair[0]+" / "+pair[1], slow, fast, restoreFaster, true)
		}
	}
	f.WithinTarget = len(f.Against) == 0 && len(f.Cases) > 0
}

func (f *backupFigures) compare(name string, a, b, limit float64, atLeast bool) {
	if b <= 0 {
		f.Against = append(f.Against, name+": there is nothing to compare with")
		return
	}
	r := backupRatio{Name: name, Got: round(a / b), Limit: limit, AtLeast: atLeast}
	if r.Met = r.Got <= limit; atLeast {
		r.Met = r.Got >= limit
	}
	if !r.Met {
		f.Against = append(f.Against, fmt.Sprintf("%s is %.2f, and the limit is %.2f", name, r.Got, limit))
	}
	f.Ratios = append(f.Ratios, r)
}

func secondsOf(rows []backupRow, name string, restore bool) float64 {
	for _, r := range rows {
		if r.Name == name && restore {
			return r.RestoreSeconds
		}
		if r.Name == name {
			return r.BackupSeconds
		}
	}
	return 0
}

func (f *backupFigures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%d MB of rows, a directory of %d MB\n", f.SizeBytes/1e6, f.DirectoryBytes/1e6)
	fmt.Fprintln(w, "WHAT\tRUNS\tBACKUP\tMB/S\tSTORED\tRESTORE\tMB/S\tWHOLE")
	for _, r := range slices.Concat(f.Baselines, f.Cases) {
		fmt.Fprintf(w, "%s\t%d\t%.1f s\t%.0f\t%d MB\t%.1f s\t%.0f\t%.1f s\n", r.Name, r.Runs, r.BackupSeconds, r.BackupMBPerSecond,
			r.StoredBytes/1e6, r.RestoreSeconds, r.RestoreMBPerSecond, r.WholeSeconds)
	}
	for _, r := range f.Ratios {
		word, sign := "within", "at most"
		if r.AtLeast {
			sign = "at least"
		}
		if !r.Met {
			word = "MISSED"
		}
		fmt.Fprintf(w, "%s\t%.2f\t%s %.1f\t%s\n", r.Name, r.Got, sign, r.Limit, word)
	}
	if len(f.Against) > 0 {
		fmt.Fprintf(w, "not as it should be: %s\n", strings.Join(f.Against, "; "))
	}
	// A terminal that went away takes nothing along: the figures are in the file.
	_ = w.Flush()
}

// read takes over what a file says; one that is not there says nothing.
func (f *backupFigures) read(path string) error {
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
