// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// measuredBackups are figures of runs of 10 s for each baseline, and of these for the cases.
func measuredBackups(backups, restores map[string]float64) *backupFigures {
	f := &backupFigures{DirectoryBytes: 5e9}
	for _, name := range []string{baselineDump, baselineCopy} {
		f.addBaseline(name, backupSample{BackupSeconds: 10})
	}
	for _, c := range backupCases {
		if backups[c.name] > 0 {
			f.add(c, backupSample{BackupSeconds: backups[c.name], RestoreSeconds: restores[c.name], DigestsAlike: true}, nil)
		}
	}
	f.judge()
	return f
}

func TestBackupsAreJudged(t *testing.T) {
	good := map[string]float64{"logical": 12, "logical-age": 11, "physical": 15, "physical-age": 14}
	restores := map[string]float64{"logical": 80, "logical-age": 100, "physical": 20, "physical-age": 25}
	for name, tc := range map[string]struct {
		backups, restores map[string]float64
		against           string
	}{
		"all within":        {good, restores, ""},
		"logical too slow":  {map[string]float64{"logical": 12.1}, restores, "logical / mysqldump-zstd is 1.21"},
		"physical too slow": {map[string]float64{"physical-age": 15.2}, restores, "physical-age / copy is 1.52"},
		"restore too slow":  {good, map[string]float64{"logical": 79, "physical": 20}, "restore of logical / physical is 3.95"},
	} {
		f := measuredBackups(tc.backups, tc.restores)
		if got := strings.Join(f.Against, "; "); f.WithinTarget != (tc.against == "") || !strings.Contains(got, tc.against) || tc.against == "" && got != "" {
			t.Errorf("%s: within %t, against %q, want %q", name, f.WithinTarget, got, tc.against)
		}
	}
	f := measuredBackups(good, restores)
	if r := f.Cases[0]; r.BackupMBPerSecond != 416.667 || r.RestoreMBPerSecond != 62.5 {
		t.Errorf("rates of %+v", r)
	}
	var out bytes.Buffer
	f.print(&out)
	for _, text := range []string{"logical-age / mysqldump-zstd", "at least 4.0", "417"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("no %q in\n%s", text, out.String())
		}
	}
}

// A run that failed, a case without one, and a baseline that is missing are no success.
func TestBackupsThatWereNotMeasured(t *testing.T) {
	f := measuredBackups(map[string]float64{"logical": 10}, nil)
	f.add(backupCases[0], backupSample{}, errors.New("run 2: the pod was evicted"))
	f.add(backupCases[2], backupSample{}, errors.New("run 1: no room"))
	f.judge()
	if f.WithinTarget || f.Cases[0].Runs != 1 || len(f.Against) != 3 {
		t.Errorf("within %t: %q", f.WithinTarget, f.Against)
	}
	f.begin(backupCases[:1])
	if len(f.Cases) != 1 || f.Baselines != nil {
		t.Errorf("left are %+v and %+v", f.Cases, f.Baselines)
	}
	f.add(backupCases[0], backupSample{BackupSeconds: 1}, nil)
	if f.judge(); f.WithinTarget {
		t.Error("within a target that there is nothing for")
	}
	if f := (&backupFigures{}); f.WithinTarget {
		t.Error("nothing is within its target")
	}
}

func TestSizeOf(t *testing.T) {
	for text, want := range map[string]int64{"5GiB": 5 << 30, "5Gi": 5 << 30, "500MiB": 500 << 20, "500MB": 500e6, "1MiB": 0, "junk": 0, "": 0} {
		if got, err := sizeOf(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	if _, err := backupCasesNamed("logical, physical-age"); err != nil {
		t.Error(err)
	}
	if _, err := backupCasesNamed("magic"); err == nil {
		t.Error("a case that is not there was taken")
	}
}

func TestEnoughRoom(t *testing.T) {
	if err := enoughRoom(t.TempDir(), 1); err != nil {
		t.Error(err)
	}
	if err := enoughRoom(t.TempDir(), 1<<50); err == nil || !strings.Contains(err.Error(), "SIZE") {
		t.Errorf("a petabyte has room: %v", err)
	}
}
