// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// keyringFigures are the output of `make bench-keyring`. Seconds and rates are said in the names.
type keyringFigures struct {
	Machine    machine              `json:"machine"`
	BringUp    *bringUpFigures      `json:"bringUp,omitempty"`
	Rotation   *rotationFigures     `json:"rotation,omitempty"`
	Throughput *throughputFigures   `json:"throughput,omitempty"`
	Failovers  []failoverComparison `json:"failovers,omitempty"`
	// FailedParts are those of this run that could not be measured, and why.
	FailedParts []string `json:"failedParts,omitempty"`
	// WithinTarget is true if every part is there, none failed, and every target was met.
	WithinTarget bool `json:"withinTarget"`
}

// origin says of what and when a part was measured.
type origin struct {
	Commit     string    `json:"commit"`
	MeasuredAt time.Time `json:"measuredAt"`
}

// bringUpFigures are of a new group: from `kubectl apply` until every site is sealed.
type bringUpFigures struct {
	origin
	AppliedToSealedSeconds float64      `json:"appliedToSealedSeconds"`
	Sites                  []siteSteps  `json:"sites"`
	Target                 keyringLimit `json:"target"`
}

// rotationFigures are of one site, from the annotation until it is sealed again and the annotation is gone.
type rotationFigures struct {
	origin
	OrderedToAnsweredSeconds float64 `json:"orderedToAnsweredSeconds"`
	siteSteps
}

// siteSteps is when a site was first seen in each step, in seconds since it was asked for. Zero: it was not seen there.
type siteSteps struct {
	Site string `json:"site"`
	// UnsealedSeconds: status says so, and the pod is replaced. RotatingSeconds: the unsealed pod is ready, and its keys may
	// be rotated from now on.
	UnsealedSeconds float64 `json:"unsealedSeconds"`
	RotatingSeconds float64 `json:"rotatingSeconds,omitempty"`
	RotatedSeconds  float64 `json:"rotatedSeconds,omitempty"`
	// EscrowedSeconds is the first time; a new replica escrows again after its clone.
	EscrowedSeconds float64 `json:"escrowedSeconds"`
	SealingSeconds  float64 `json:"sealingSeconds"`
	SealedSeconds   float64 `json:"sealedSeconds"`
	// What lies between them. Work is all between the first escrow and sealing: the clone, and the calm before sealing.
	UnsealToEscrowSeconds float64       `json:"unsealToEscrowSeconds"`
	WorkSeconds           float64       `json:"workSeconds"`
	SealSeconds           float64       `json:"sealSeconds"`
	Steps                 []keyringStep `json:"steps"`
}

// keyringStep is one change that was seen in status.
type keyringStep struct {
	AtSeconds float64               `json:"atSeconds"`
	Phase     v1alpha1.KeyringPhase `json:"phase"`
	Work      v1alpha1.KeyringWork  `json:"work,omitempty"`
	Stage     v1alpha1.KeyringStage `json:"stage,omitempty"`
	Rotated   bool                  `json:"rotated,omitempty"`
	Version   int64                 `json:"version,omitempty"`
}

// throughputFigures compare what two groups take that differ in encryption only.
type throughputFigures struct {
	origin
	Connections int     `json:"connections"`
	RowBytes    int     `json:"rowBytes"`
	RunSeconds  float64 `json:"runSeconds"`
	// Rows are commits, one row each; medians of the runs.
	PlainRowsPerSecond     float64            `json:"plainRowsPerSecond"`
	EncryptedRowsPerSecond float64            `json:"encryptedRowsPerSecond"`
	EncryptedToPlainRatio  float64            `json:"encryptedToPlainRatio"`
	Samples                []throughputSample `json:"samples"`
}

type throughputSample struct {
	Group         string  `json:"group"`
	RowsPerSecond float64 `json:"rowsPerSecond"`
	// P99CommitSeconds is how long a commit takes at most, but for one in a hundred.
	P99CommitSeconds float64 `json:"p99CommitSeconds"`
}

// failoverComparison compares one way to move the role, in turn on a group without encryption and on one with it.
type failoverComparison struct {
	origin
	Case      string     `json:"case"`
	Plain     pauseOfArm `json:"plain"`
	Encrypted pauseOfArm `json:"encrypted"`
	// Ratio compares the medians of what clients saw, OperatorRatio those of what the operator measured, which is finer.
	Ratio         float64      `json:"encryptedToPlainRatio"`
	OperatorRatio float64      `json:"encryptedToPlainOperatorRatio,omitempty"`
	Target        keyringLimit `json:"target"`
	// FailedRuns are no samples, and take the case out of its target.
	FailedRuns []string `json:"failedRuns,omitempty"`
	// WithinTarget is true if the target was met, on both groups nothing was proven wrong, and no run failed.
	WithinTarget bool `json:"withinTarget"`
}

// pauseOfArm are the pauses of the clients of one group, as in bench-failover.
type pauseOfArm struct {
	Runs        int     `json:"runs"`
	P50Seconds  float64 `json:"p50Seconds"`
	P99Seconds  float64 `json:"p99Seconds"`
	MeanSeconds float64 `json:"meanSeconds"`
	// OperatorP50Seconds is what the operator says of the pauses of planned failovers; 0 if it says nothing.
	OperatorP50Seconds float64  `json:"operatorP50Seconds,omitempty"`
	AckedLost          int      `json:"ackedLost"`
	WriterOverlaps     int      `json:"writerOverlaps"`
	Samples            []sample `json:"samples"`
}

// keyringLimit is a limit and what was measured.
type keyringLimit struct {
	Figure string  `json:"figure"`
	Limit  float64 `json:"limit"`
	Got    float64 `json:"got"`
	Met    bool    `json:"met"`
}

func limited(figure string, limit, got float64) keyringLimit {
	return keyringLimit{Figure: figure, Limit: limit, Got: got, Met: got <= limit}
}

const (
	// sealedLimit is from apply until three new sites are sealed.
	sealedLimit = 240.0
	// slowerLimit is how much longer a pause may be with encryption.
	slowerLimit = 1.1

	armPlain     = "plain"
	armEncrypted = "encrypted"
)

// mark fills in when each step was seen first.
func (s *siteSteps) mark() {
	first := func(is func(keyringStep) bool) float64 {
		i := slices.IndexFunc(s.Steps, is)
		if i < 0 {
			return 0
		}
		return s.Steps[i].AtSeconds
	}
	s.UnsealedSeconds = first(func(k keyringStep) bool { return k.Phase == v1alpha1.KeyringUnsealed })
	s.RotatingSeconds = first(func(k keyringStep) bool { return k.Stage == v1alpha1.KeyringRotating })
	s.RotatedSeconds = first(func(k keyringStep) bool { return k.Rotated && k.Phase != v1alpha1.KeyringSealed })
	s.EscrowedSeconds = first(func(k keyringStep) bool { return k.Phase == v1alpha1.KeyringEscrowed })
	if sealed := len(s.Steps) - 1; sealed >= 0 && s.Steps[sealed].Phase == v1alpha1.KeyringSealed {
		// The last time: sealing is taken back if the keyring changes.
		for sealed > 0 && s.Steps[sealed-1].Phase == v1alpha1.KeyringSealed && s.Steps[sealed-1].AtSeconds > s.EscrowedSeconds {
			sealed-- // what follows is that the order is forgotten
		}
		s.SealedSeconds = s.Steps[sealed].AtSeconds
		for i := sealed - 1; i >= 0 && s.Steps[i].Stage == v1alpha1.KeyringSealing; i-- {
			s.SealingSeconds = s.Steps[i].AtSeconds
		}
	}
	s.UnsealToEscrowSeconds = round(s.EscrowedSeconds - s.UnsealedSeconds)
	s.WorkSeconds = round(s.SealingSeconds - s.EscrowedSeconds)
	s.SealSeconds = round(s.SealedSeconds - s.SealingSeconds)
}

// sum fills in the medians.
func (f *throughputFigures) sum() {
	rates := map[string][]float64{}
	for _, s := range f.Samples {
		rates[s.Group] = append(rates[s.Group], s.RowsPerSecond)
	}
	f.PlainRowsPerSecond, f.EncryptedRowsPerSecond = percentile(rates[armPlain], 50), percentile(rates[armEncrypted], 50)
	f.EncryptedToPlainRatio = ratio(f.EncryptedRowsPerSecond, f.PlainRowsPerSecond)
}

// compare sums the runs of a case up. Which group was slower is decided by the medians of what clients saw.
func compare(name string, arms map[string]outcome) failoverComparison {
	c := failoverComparison{Case: name, Plain: pauses(arms[armPlain].samples), Encrypted: pauses(arms[armEncrypted].samples)}
	for _, arm := range []string{armPlain, armEncrypted} {
		for _, err := range arms[arm].errs {
			c.FailedRuns = append(c.FailedRuns, arm+": "+err.Error())
		}
	}
	c.Ratio = ratio(c.Encrypted.P50Seconds, c.Plain.P50Seconds)
	c.OperatorRatio = ratio(c.Encrypted.OperatorP50Seconds, c.Plain.OperatorP50Seconds)
	c.Target = limited("encryptedToPlainRatio", slowerLimit, c.Ratio)
	both := c.Plain.Runs > 0 && c.Encrypted.Runs > 0
	c.Target.Met = c.Target.Met && both
	c.WithinTarget = c.Target.Met && len(c.FailedRuns) == 0 && c.Plain.WriterOverlaps+c.Encrypted.WriterOverlaps == 0
	return c
}

func pauses(samples []sample) pauseOfArm {
	p := pauseOfArm{Runs: len(samples), Samples: samples}
	var seconds, operator []float64
	sum := 0.0
	for _, s := range samples {
		seconds, sum = append(seconds, s.Seconds), sum+s.Seconds
		if s.OperatorSeconds != nil {
			operator = append(operator, *s.OperatorSeconds)
		}
		p.AckedLost += s.Lost
		p.WriterOverlaps += s.Overlaps
	}
	p.P50Seconds, p.P99Seconds = percentile(seconds, 50), percentile(seconds, 99)
	p.MeanSeconds = round(sum / math.Max(1, float64(len(samples))))
	p.OperatorP50Seconds = percentile(operator, 50)
	return p
}

// ratio is 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return round(a / b)
}

func (f *keyringFigures) put(c failoverComparison) {
	if i := slices.IndexFunc(f.Failovers, func(old failoverComparison) bool { return old.Case == c.Case }); i >= 0 {
		f.Failovers[i] = c
		return
	}
	f.Failovers = append(f.Failovers, c)
}

// judge draws the verdict over all parts.
func (f *keyringFigures) judge() {
	has := func(name string) bool {
		return slices.ContainsFunc(f.Failovers, func(c failoverComparison) bool { return c.Case == name })
	}
	f.WithinTarget = len(f.FailedParts) == 0 && f.BringUp != nil && f.BringUp.Target.Met && f.Rotation != nil && f.Throughput != nil &&
		has(partPlanned) && (has(partForceDelete) || has(partMysqldDead)) &&
		!slices.ContainsFunc(f.Failovers, func(c failoverComparison) bool { return !c.WithinTarget })
}

func (f *keyringFigures) read(path string) error {
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
	f.FailedParts = nil
	return nil
}

// print prints the tables with the verdicts.
func (f *keyringFigures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nWHAT\tMEASURED\tTARGET\tVERDICT")
	if b := f.BringUp; b != nil {
		fmt.Fprintf(w, "apply until every site is sealed\t%.1f s\t%.0f s\t%s\n", b.AppliedToSealedSeconds, b.Target.Limit, said(b.Target.Met))
	}
	if r := f.Rotation; r != nil {
		fmt.Fprintf(w, "rotation of %s\t%.1f s: unsealed at %.1f, rotated %.1f, in escrow %.1f, sealed %.1f\t\t\n", r.Site,
			r.OrderedToAnsweredSeconds, r.UnsealedSeconds, r.RotatedSeconds, r.EscrowedSeconds, r.SealedSeconds)
	}
	if t := f.Throughput; t != nil {
		fmt.Fprintf(w, "rows a second, %d connections\t%.0f plain, %.0f encrypted, ratio %.2f\t\t\n", t.Connections,
			t.PlainRowsPerSecond, t.EncryptedRowsPerSecond, t.EncryptedToPlainRatio)
	}
	for _, c := range f.Failovers {
		fmt.Fprintf(w, "pause, %s (median of %d and %d)\t%.3f s plain, %.3f s encrypted, ratio %.2f (operator's %.2f)\t%.2f\t%s\n", c.Case, c.Plain.Runs,
			c.Encrypted.Runs, c.Plain.P50Seconds, c.Encrypted.P50Seconds, c.Ratio, c.OperatorRatio, c.Target.Limit, said(c.WithinTarget))
	}
	_ = w.Flush()
	if len(f.FailedParts) > 0 {
		fmt.Fprintf(out, "could not be measured: %s\n", strings.Join(f.FailedParts, "; "))
	}
}

func said(met bool) string {
	if met {
		return "within"
	}
	return "MISSED"
}
