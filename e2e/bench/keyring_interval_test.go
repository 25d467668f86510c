// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// runsOfBoth makes one pair of each plain and each encrypted value.
func runsOfBoth(plain, encrypted []float64) []pair {
	var pairs []pair
	for i := range plain {
		pairs = append(pairs, pair{plain: []float64{plain[i]}, encrypted: []float64{encrypted[i]}})
	}
	return pairs
}

func repeated(v float64, n int) []float64 {
	var all []float64
	for range n {
		all = append(all, v)
	}
	return all
}

func TestRatioInterval(t *testing.T) {
	noisy := []float64{4, 5, 6, 4, 5, 6, 4, 5, 6, 5}
	for name, tt := range map[string]struct {
		reason string
		pairs  []pair
		want   *interval
	}{
		"nothing":           {"no ratio", nil, nil},
		"too few":           {"four runs that agree are no certainty", runsOfBoth(repeated(5, leastRuns-1), repeated(5, leastRuns-1)), nil},
		"no noise":          {"nothing else can be drawn", runsOfBoth(repeated(5, leastRuns), repeated(6, leastRuns)), &interval{1.2, 1.2}},
		"a pause of nought": {"nothing is a multiple of it", runsOfBoth([]float64{5, 5, 0, 5, 5}, repeated(5, 5)), nil},
		"encrypted nought":  {"that is a ratio", runsOfBoth(repeated(5, 5), repeated(0, 5)), &interval{0, 0}},
		"noise of both":     {"a minute that is slow for both groups says nothing of either", runsOfBoth(noisy, noisy), &interval{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ratioInterval(tt.pairs)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// The interval holds the ratio that was seen, is that of the noise, shrinks with more runs, and is the same every time.
func TestRatioIntervalIsOfTheNoise(t *testing.T) {
	plain, encrypted := []float64{4, 5, 6, 4.5, 5.5}, []float64{5.5, 4.5, 5, 6, 4}
	few := ratioInterval(runsOfBoth(plain, encrypted))
	if few == nil || few.Low >= 0.95 || few.High <= 1.05 || few.Low < 4.0/6 || few.High > 6.0/4 {
		t.Fatalf("interval %+v of a ratio of 1 with a noise of a fifth", few)
	}
	if again := ratioInterval(runsOfBoth(plain, encrypted)); *again != *few {
		t.Errorf("the same runs give %+v and %+v", few, again)
	}
	var more []pair
	for range 10 {
		more = append(more, runsOfBoth(plain, encrypted)...)
	}
	many := ratioInterval(more)
	if many == nil || many.High-many.Low > (few.High-few.Low)/2 || many.Low > 1 || many.High < 1 {
		t.Errorf("interval %+v of ten times the runs, %+v of the runs", many, few)
	}
}

// The moves of a run resemble each other: four times the moves in as many runs are no more certain.
func TestRatioIntervalDrawsRuns(t *testing.T) {
	plain, encrypted := []float64{4, 5, 6, 4.5, 5.5}, []float64{5.5, 4.5, 5, 6, 4}
	var whole []pair
	for i := range plain {
		whole = append(whole, pair{plain: repeated(plain[i], 4), encrypted: repeated(encrypted[i], 4)})
	}
	one, four := ratioInterval(runsOfBoth(plain, encrypted)), ratioInterval(whole)
	if one == nil || four == nil || four.High-four.Low < 0.8*(one.High-one.Low) {
		t.Errorf("interval %+v of one move a run, %+v of four", one, four)
	}
}

func TestPairsOf(t *testing.T) {
	at := func(run int, seconds float64) sample { return sample{Run: run, Seconds: seconds} }
	got := pairsOf([]sample{at(1, 1), at(1, 2), at(2, 3), at(4, 9)}, []sample{at(3, 4), at(2, 5), at(1, 6)}, clientPause)
	want := []pair{{[]float64{1, 2}, []float64{6}}, {[]float64{3}, []float64{5}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pair{})); diff != "" {
		t.Errorf("what both groups have of a run (-want +got):\n%s", diff)
	}
	if got := pairsOf([]sample{at(1, 1)}, []sample{at(1, 1)}, operatorPause); got != nil {
		t.Errorf("pairs %+v of what the operator did not say", got)
	}
}

func TestVerdictOf(t *testing.T) {
	for name, tt := range map[string]struct {
		at   *interval
		want verdict
	}{
		"none":           {nil, verdictOpen},
		"below":          {&interval{0.9, 1.05}, verdictWithin},
		"up to it":       {&interval{0.9, 1.1}, verdictWithin},
		"across":         {&interval{0.9, 1.101}, verdictOpen},
		"from it upward": {&interval{1.1, 1.2}, verdictOpen},
		"above":          {&interval{1.101, 1.2}, verdictMissed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdictOf(tt.at); got != tt.want {
				t.Errorf("%+v of %v: %s, want %s", tt.at, slowerLimit, got, tt.want)
			}
		})
	}
}

func TestProofFault(t *testing.T) {
	for name, tt := range map[string]struct {
		arm   string
		proof tableProof
		fine  bool
	}{
		"encrypted":             {armEncrypted, tableProof{Encryption: "Y", FullCoverage: true}, true},
		"encrypted in part":     {armEncrypted, tableProof{Encryption: "Y"}, false},
		"a table in the clear":  {armEncrypted, tableProof{Encryption: "N", FullCoverage: true}, false},
		"no such table":         {armEncrypted, tableProof{FullCoverage: true}, false},
		"plain":                 {armPlain, tableProof{Encryption: "N"}, true},
		"plain, no such table":  {armPlain, tableProof{}, false},
		"plain, but encrypted":  {armPlain, tableProof{Encryption: "Y"}, false},
		"plain, status says no": {armPlain, tableProof{Encryption: "N", FullCoverage: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.proof.fault(tt.arm); (err == nil) != tt.fine {
				t.Errorf("%+v of the group %s: %v", tt.proof, tt.arm, err)
			}
		})
	}
}

func TestNotCovered(t *testing.T) {
	full := v1alpha1.CoverageStatus{
		KeyringComponent: "component_keyring_file", KeyringReadOnly: true, SystemTablespaceEncrypted: true,
		RedoLogEncrypted: true, UndoLogEncrypted: true, BinlogEncrypted: true,
	}
	for name, tt := range map[string]struct {
		change  func(*v1alpha1.MysqlFailoverGroup)
		covered bool
	}{
		"all":           {func(*v1alpha1.MysqlFailoverGroup) {}, true},
		"no encryption": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.EncryptionAtRest = nil }, false},
		"a table": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.EncryptionAtRest.Sites[1].Coverage.UnencryptedTablespaces = 1
		}, false},
		"binary logs": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.EncryptionAtRest.Sites[0].Coverage.BinlogEncrypted = false
		}, false},
		"a silent site": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.EncryptionAtRest.Sites = g.Status.EncryptionAtRest.Sites[:1]
		}, false},
		"not ready": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Conditions[0].Status = "False" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.MysqlFailoverGroup{}
			g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{}
			for _, site := range []string{"east", "west"} {
				g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: site})
				g.Status.EncryptionAtRest.Sites = append(g.Status.EncryptionAtRest.Sites, v1alpha1.SiteKeyringStatus{Name: site, Coverage: full})
			}
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionEncryptionReady, Status: "True"})
			tt.change(g)
			if err := notCovered(g); (err == nil) != tt.covered {
				t.Errorf("covered is %t, and it is said: %v", tt.covered, err)
			}
		})
	}
}
