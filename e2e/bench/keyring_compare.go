// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
)

// failoverComparison compares one way to move the role, in turn on a group without encryption and on one with it.
type failoverComparison struct {
	origin
	Case      string     `json:"case"`
	Plain     pauseOfArm `json:"plain"`
	Encrypted pauseOfArm `json:"encrypted"`
	// Ratio compares the medians of what clients saw, OperatorRatio those of what the operator measured, which is finer.
	Ratio         float64 `json:"encryptedToPlainRatio"`
	OperatorRatio float64 `json:"encryptedToPlainOperatorRatio,omitempty"`
	// Target is of the one of them that is judged: the operator's for planned failovers, the clients' for emergencies, of
	// which the operator says nothing. Met says it of the ratio as it was seen; Verdict of all that it may be.
	Target keyringLimit `json:"target"`
	// Interval is where that ratio lies with 95 % certainty.
	Interval *interval `json:"interval95,omitempty"`
	Verdict  verdict   `json:"verdict"`
	// Against is what takes the case out of its target whatever its pauses are.
	Against []string `json:"against,omitempty"`
	// FailedRuns are no samples, and take the case out of its target.
	FailedRuns []string `json:"failedRuns,omitempty"`
	// WithinTarget is true if the verdict is `within` and nothing is against it.
	WithinTarget bool `json:"withinTarget"`
}

// pauseOfArm are the pauses of the clients of one group, as in bench-failover.
type pauseOfArm struct {
	Runs        int     `json:"runs"`
	P50Seconds  float64 `json:"p50Seconds"`
	P99Seconds  float64 `json:"p99Seconds"`
	MeanSeconds float64 `json:"meanSeconds"`
	// OperatorP50Seconds is what the operator says of the pauses of planned failovers; 0 if it says nothing.
	OperatorP50Seconds float64 `json:"operatorP50Seconds,omitempty"`
	AckedLost          int     `json:"ackedLost"`
	WriterOverlaps     int     `json:"writerOverlaps"`
	// StolenPercent is the median of the runs': how noisy the machine was for this group.
	StolenPercent float64 `json:"stolenPercent"`
	// Table is what was under load in the last run, as the server says.
	Table   tableProof `json:"table"`
	Samples []sample   `json:"samples"`
}

// compare sums the runs of a case up and judges them.
func compare(name string, outcomes map[string]outcome) failoverComparison {
	c := failoverComparison{Case: name, Plain: pauses(outcomes[armPlain]), Encrypted: pauses(outcomes[armEncrypted])}
	for _, a := range arms {
		for _, err := range outcomes[a.name].errs {
			c.FailedRuns = append(c.FailedRuns, a.name+": "+err.Error())
		}
	}
	c.Ratio = ratio(c.Encrypted.P50Seconds, c.Plain.P50Seconds)
	c.OperatorRatio = ratio(c.Encrypted.OperatorP50Seconds, c.Plain.OperatorP50Seconds)
	c.judge()
	return c
}

func pauses(o outcome) pauseOfArm {
	p := pauseOfArm{Runs: len(o.samples), Table: o.table, Samples: o.samples}
	var seconds, stolen []float64
	sum := 0.0
	for _, s := range o.samples {
		seconds, stolen, sum = append(seconds, s.Seconds), append(stolen, s.StolenPercent), sum+s.Seconds
		p.AckedLost += s.Lost
		p.WriterOverlaps += s.Overlaps
	}
	p.P50Seconds, p.P99Seconds = percentile(seconds, 50), percentile(seconds, 99)
	p.MeanSeconds = round(sum / math.Max(1, float64(len(o.samples))))
	p.OperatorP50Seconds = percentile(measuredBy(operatorPause, o.samples), 50)
	p.StolenPercent = percentile(stolen, 50)
	return p
}

// clientPause is known to 25 ms, which is too coarse for a planned failover; operatorPause is in milliseconds.
func clientPause(s sample) (float64, bool) { return s.Seconds, true }

func operatorPause(s sample) (float64, bool) {
	if s.OperatorSeconds == nil {
		return 0, false
	}
	return *s.OperatorSeconds, true
}

func measuredBy(measure func(sample) (float64, bool), samples []sample) []float64 {
	var all []float64
	for _, s := range samples {
		if v, ok := measure(s); ok {
			all = append(all, v)
		}
	}
	return all
}

// judge draws the verdict over the case: first by the pauses, then by what no pause makes good.
func (c *failoverComparison) judge() {
	measure, least := clientPause, leastRuns
	c.Target = limited("encryptedToPlainRatio", slowerLimit, c.Ratio)
	if c.Case == partPlanned {
		measure, least = operatorPause, leastRuns*movesOfSession
		c.Target = limited("encryptedToPlainOperatorRatio", slowerLimit, c.OperatorRatio)
	}
	// A ratio of nothing is 0, and meets nothing.
	c.Target.Met = c.Target.Met && c.Target.Got > 0
	pairs := pairsOf(c.Plain.Samples, c.Encrypted.Samples, measure)
	c.Interval = ratioInterval(pairs)
	c.Verdict = verdictOf(c.Interval)
	plain, encrypted := len(measuredBy(measure, c.Plain.Samples)), len(measuredBy(measure, c.Encrypted.Samples))
	var few []string
	if min(plain, encrypted) < least || len(pairs) < leastRuns {
		few = append(few, fmt.Sprintf("%d and %d samples in %d runs of both groups, and at least %d each in %d are needed",
			plain, encrypted, len(pairs), least, leastRuns))
		c.Verdict = verdictOpen
	}
	wrong := c.wrong()
	if len(wrong) > 0 {
		c.Verdict = verdictMissed
	}
	c.Against = slices.Concat(wrong, few)
	c.WithinTarget = c.Verdict == verdictWithin && len(c.Against) == 0
}

// wrong is what no pause makes good.
func (c *failoverComparison) wrong() []string {
	var wrong []string
	if n := len(c.FailedRuns); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d runs failed", n))
	}
	if n := c.Plain.WriterOverlaps + c.Encrypted.WriterOverlaps; n > 0 {
		wrong = append(wrong, fmt.Sprintf("two sites accepted commits at the same time %d times", n))
	}
	// An emergency may lose what had not been replicated; that the group says so is checked in every run.
	if n := c.Plain.AckedLost + c.Encrypted.AckedLost; n > 0 && c.Case == partPlanned {
		wrong = append(wrong, fmt.Sprintf("%d acknowledged rows are missing", n))
	}
	return append(wrong, unproven(c.Plain.Table, c.Encrypted.Table)...)
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
