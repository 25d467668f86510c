// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

var measured = origin{Commit: "abc", MeasuredAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}

// told is what status says of one site's keyring at a moment.
func told(l *timeline, seconds int, k v1alpha1.SiteKeyringStatus) {
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{k, {Name: "later"}}}
	l.note(group, l.began.Add(time.Duration(seconds)*time.Second))
}

// aRotation is the life of a site from the annotation until the order is forgotten.
func aRotation() *timeline {
	l := newTimeline(measured.MeasuredAt)
	rotation, sealing := v1alpha1.KeyringRotation, v1alpha1.KeyringSealing
	for at, k := range []v1alpha1.SiteKeyringStatus{
		{Phase: v1alpha1.KeyringSealed, KeyringVersion: 1},
		{Phase: v1alpha1.KeyringPending, KeyringVersion: 1, Work: rotation},
		{Phase: v1alpha1.KeyringUnsealed, KeyringVersion: 1, Work: rotation},
		{Phase: v1alpha1.KeyringUnsealed, KeyringVersion: 1, Work: rotation}, // nothing changed
		{Phase: v1alpha1.KeyringUnsealed, KeyringVersion: 1, Work: rotation, Stage: v1alpha1.KeyringRotating},
		{Phase: v1alpha1.KeyringUnsealed, KeyringVersion: 1, Work: rotation, Stage: v1alpha1.KeyringRotating, Rotated: true},
		{Phase: v1alpha1.KeyringEscrowed, KeyringVersion: 2, Work: rotation, Stage: v1alpha1.KeyringRotating, Rotated: true},
		{Phase: v1alpha1.KeyringEscrowed, KeyringVersion: 2, Work: rotation, Stage: sealing, Rotated: true},
		{Phase: v1alpha1.KeyringSealed, KeyringVersion: 2, Rotated: true},
		{Phase: v1alpha1.KeyringSealed, KeyringVersion: 2},
	} {
		k.Name = "west"
		told(l, at, k)
	}
	return l
}

// aBringUp is that of a replica, which escrows again after its clone.
func aBringUp() *timeline {
	l := newTimeline(measured.MeasuredAt)
	boot := v1alpha1.KeyringBootstrap
	for _, at := range []struct {
		seconds int
		is      v1alpha1.SiteKeyringStatus
	}{
		{1, v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringUnsealed, Work: boot}},
		{20, v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringEscrowed, Work: boot, KeyringVersion: 1}},
		{35, v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringUnsealed, Work: boot, KeyringVersion: 1}},
		{37, v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringEscrowed, Work: boot, KeyringVersion: 2}},
		{44, v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringEscrowed, Work: boot, Stage: v1alpha1.KeyringSealing, KeyringVersion: 2}},
		{70, v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringSealed, KeyringVersion: 2}},
	} {
		at.is.Name = "west"
		told(l, at.seconds, at.is)
	}
	return l
}

func secondsOf(values ...float64) outcome {
	var o outcome
	for _, v := range values {
		operator := v / 2
		o.samples = append(o.samples, sample{Seconds: v, OperatorSeconds: &operator, Acked: 100})
	}
	return o
}

// someFigures are those of a run in which everything was measured.
func someFigures(t *testing.T) *keyringFigures {
	t.Helper()
	f := &keyringFigures{
		BringUp:  &bringUpFigures{origin: measured, AppliedToSealedSeconds: 70, Sites: aBringUp().sites(), Target: limited("appliedToSealedSeconds", sealedLimit, 70)},
		Rotation: &rotationFigures{origin: measured, OrderedToAnsweredSeconds: 9, siteSteps: aRotation().sites()[0]},
		Throughput: &throughputFigures{origin: measured, Connections: 16, RowBytes: 1024, RunSeconds: 20, Samples: []throughputSample{
			{armPlain, 1000, 0.05}, {armEncrypted, 900, 0.06}, {armEncrypted, 950, 0.06}, {armPlain, 1100, 0.05}, {armPlain, 1050, 0.05}, {armEncrypted, 980, 0.06},
		}},
	}
	f.Throughput.sum()
	f.put(compare(partPlanned, map[string]outcome{armPlain: secondsOf(0.2, 0.21, 0.22), armEncrypted: secondsOf(0.21, 0.23, 0.2)}))
	f.put(compare(partForceDelete, map[string]outcome{armPlain: secondsOf(5, 5.5, 6), armEncrypted: secondsOf(5.4, 5.2, 5.6)}))
	f.judge()
	return f
}

// The form is read by others: names, units and verdicts are as in the golden file.
func TestKeyringFiguresGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench-keyring.json")
	if err := writeJSON(path, someFigures(t)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "bench-keyring.golden.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("figures (-want +got; -update writes them):\n%s", diff)
	}
	var again keyringFigures
	if err := again.read(path); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(someFigures(t), &again, cmp.AllowUnexported(keyringFigures{}, bringUpFigures{}, rotationFigures{}, throughputFigures{}, failoverComparison{})); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

func TestSiteSteps(t *testing.T) {
	r := aRotation().sites()
	if len(r) != 1 || len(r[0].Steps) != 9 {
		t.Fatalf("steps %+v: each change once, and nothing of a site that status says nothing of", r)
	}
	r[0].Steps = nil
	want := siteSteps{
		Site: "west", UnsealedSeconds: 2, RotatingSeconds: 4, RotatedSeconds: 5, EscrowedSeconds: 6, SealingSeconds: 7, SealedSeconds: 8,
		UnsealToEscrowSeconds: 4, WorkSeconds: 1, SealSeconds: 1,
	}
	if diff := cmp.Diff(want, r[0]); diff != "" {
		t.Errorf("rotation (-want +got):\n%s", diff)
	}
	b := aBringUp().sites()[0]
	b.Steps = nil
	want = siteSteps{
		Site: "west", UnsealedSeconds: 1, EscrowedSeconds: 20, SealingSeconds: 44, SealedSeconds: 70,
		UnsealToEscrowSeconds: 19, WorkSeconds: 24, SealSeconds: 26,
	}
	if diff := cmp.Diff(want, b); diff != "" {
		t.Errorf("bring-up (-want +got):\n%s", diff)
	}
}

func TestKeyringVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		change func(*keyringFigures)
		want   bool
	}{
		"fine":              {"every part is there and within its target", func(*keyringFigures) {}, true},
		"sealed too late":   {"four minutes", func(f *keyringFigures) { f.BringUp.Target = limited("x", sealedLimit, 241) }, false},
		"no rotation":       {"what was not measured is not within", func(f *keyringFigures) { f.Rotation = nil }, false},
		"no throughput":     {"", func(f *keyringFigures) { f.Throughput = nil }, false},
		"no emergency":      {"planned alone is not enough", func(f *keyringFigures) { f.Failovers = f.Failovers[:1] }, false},
		"a part that broke": {"", func(f *keyringFigures) { f.FailedParts = []string{"round: no"} }, false},
		"slower by a fifth": {"ten percent", func(f *keyringFigures) {
			f.put(compare(partPlanned, map[string]outcome{armPlain: secondsOf(0.2), armEncrypted: secondsOf(0.24)}))
		}, false},
		"faster": {"no limit downwards", func(f *keyringFigures) {
			f.put(compare(partPlanned, map[string]outcome{armPlain: secondsOf(0.2), armEncrypted: secondsOf(0.1)}))
		}, true},
		"nothing to compare": {"a ratio of nothing proves nothing", func(f *keyringFigures) { f.put(compare(partPlanned, map[string]outcome{armEncrypted: secondsOf(0.1)})) }, false},
		"a run that failed": {"", func(f *keyringFigures) {
			f.put(compare(partPlanned, map[string]outcome{armPlain: secondsOf(1), armEncrypted: {samples: secondsOf(1).samples, errs: []error{errors.New("no")}}}))
		}, false},
		"two writers": {"", func(f *keyringFigures) {
			f.put(compare(partPlanned, map[string]outcome{armPlain: secondsOf(1), armEncrypted: {samples: []sample{{Seconds: 1, Overlaps: 1}}}}))
		}, false},
		"mysqld-dead counts": {"an emergency too", func(f *keyringFigures) { f.Failovers[1].Case = partMysqldDead }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := someFigures(t)
			tt.change(f)
			f.judge()
			if f.WithinTarget != tt.want {
				t.Errorf("%s: within = %t, %+v", tt.reason, f.WithinTarget, f.Failovers)
			}
			var out bytes.Buffer
			f.print(&out)
			if !strings.Contains(out.String(), "VERDICT") {
				t.Errorf("no table: %s", out.String())
			}
		})
	}
}

func TestSumLoad(t *testing.T) {
	got, err := sumLoad([]loader{{rows: 300, took: []float64{0.01, 0.02}}, {rows: 100, took: []float64{0.5}}}, 2*time.Second)
	if want := (throughputSample{RowsPerSecond: 200, P99CommitSeconds: 0.5}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := sumLoad([]loader{{rows: 300}, {err: errors.New("refused")}}, time.Second); err == nil {
		t.Error("a connection that failed was another load, and that is no error")
	}
}

func TestPartsNamed(t *testing.T) {
	if got, err := partsNamed("planned, round"); err != nil || len(got) != 2 || got[0] != partRound {
		t.Errorf("parts = %v, %v", got, err)
	}
	if _, err := partsNamed("drain"); err == nil {
		t.Error("a part that does not exist was accepted")
	}
	for _, part := range keyringParts()[2:] {
		named(t, part)
	}
	if all, err := partsNamed(""); err != nil || len(all) != 4 {
		t.Errorf("parts = %v, %v", all, err)
	}
}
