// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
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

// proofs are what the servers of both groups say when all is as it must be.
var proofs = map[string]tableProof{
	armPlain:     {Site: "east", Tablespace: "app/writes", Encryption: "N"},
	armEncrypted: {Site: "west", Tablespace: "app/writes", Encryption: "Y", FullCoverage: true},
}

// emergencies are runs with one fault each, which took so long.
func emergencies(armName string, seconds ...float64) outcome {
	o := outcome{table: proofs[armName]}
	for i, v := range seconds {
		o.samples = append(o.samples, sample{Seconds: v, Acked: 100, Lost: 1, StolenPercent: float64(i), Run: i + 1})
	}
	return o
}

// moves are runs of planned failovers; the operator says that all moves of one took so long, clients see something else.
func moves(armName string, seconds ...float64) outcome {
	o := outcome{table: proofs[armName]}
	for i, v := range seconds {
		for range movesOfSession {
			operator := v
			o.samples = append(o.samples, sample{
				Seconds: 0.3, OperatorSeconds: &operator, Acked: 100, StolenPercent: float64(i), Run: i + 1,
			})
		}
	}
	return o
}

// both compares what came of both groups, at the commit of all other parts.
func both(name string, plain, encrypted outcome) failoverComparison {
	c := compare(name, map[string]outcome{armPlain: plain, armEncrypted: encrypted})
	c.origin = measured
	return c
}

// planned compares moves on the encrypted group with those of the plain one that someFigures has.
func planned(change func(*outcome), seconds ...float64) failoverComparison {
	o := moves(armEncrypted, seconds...)
	if change != nil {
		change(&o)
	}
	return both(partPlanned, moves(armPlain, 0.2, 0.21, 0.22, 0.21, 0.2), o)
}

func loads(runs int) []throughputSample {
	var all []throughputSample
	for n := range runs {
		all = append(all, throughputSample{armPlain, float64(1000 + 10*n), 0.05, 1},
			throughputSample{armEncrypted, float64(900 + 20*n), 0.06, 2})
	}
	return all
}

// someFigures are those of a run in which everything was measured and is within its target.
func someFigures(t *testing.T) *keyringFigures {
	t.Helper()
	f := &keyringFigures{
		Commit: measured.Commit,
		BringUp: &bringUpFigures{
			origin: measured, AppliedToSealedSeconds: 70, Sites: aBringUp().sites(), Target: limited("appliedToSealedSeconds", sealedLimit, 70),
		},
		Rotation: &rotationFigures{origin: measured, OrderedToAnsweredSeconds: 9, siteSteps: aRotation().sites()[0]},
		Throughput: &throughputFigures{
			origin: measured, Connections: 16, RowBytes: 1024, RunSeconds: 20, Samples: loads(leastRuns),
			PlainTable: proofs[armPlain], EncryptedTable: proofs[armEncrypted],
		},
	}
	f.Throughput.sum()
	f.put(planned(nil, 0.21, 0.2, 0.21, 0.22, 0.21))
	f.put(both(partForceDelete, emergencies(armPlain, 5, 5.5, 6, 5.4, 5.6), emergencies(armEncrypted, 5.4, 5.2, 5.6, 5.5, 5.3)))
	f.judge()
	return f
}

var figuresInside = cmp.AllowUnexported(keyringFigures{}, bringUpFigures{}, rotationFigures{}, throughputFigures{}, failoverComparison{})

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
	if diff := cmp.Diff(someFigures(t), &again, figuresInside); diff != "" {
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
