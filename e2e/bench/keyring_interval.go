// SPDX-License-Identifier: Apache-2.0

package main

import "math/rand/v2"

const (
	// leastRuns is how many runs of both groups a comparison needs: fewer cannot show how much they differ by themselves.
	leastRuns = 5
	// resamples is how many times the runs are drawn again, and intervalSeed what is drawn: the same runs give the same
	// interval.
	resamples    = 5000
	intervalSeed = 20261123
)

// interval is where a ratio lies with 95 % certainty, as far as the runs can tell.
type interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// pair is one run: what was measured on both groups, one after the other.
type pair struct{ plain, encrypted []float64 }

// pairsOf puts together what has the number of one run. A run that lacks one group compares nothing.
func pairsOf(plain, encrypted []sample, measure func(sample) (float64, bool)) []pair {
	byRun := map[int]*pair{}
	var runs []int
	add := func(samples []sample, to func(*pair) *[]float64) {
		for _, s := range samples {
			v, ok := measure(s)
			if !ok {
				continue
			}
			if byRun[s.Run] == nil {
				byRun[s.Run] = &pair{}
				runs = append(runs, s.Run)
			}
			values := to(byRun[s.Run])
			*values = append(*values, v)
		}
	}
	add(plain, func(p *pair) *[]float64 { return &p.plain })
	add(encrypted, func(p *pair) *[]float64 { return &p.encrypted })
	var pairs []pair
	for _, run := range runs {
		if p := byRun[run]; len(p.plain) > 0 && len(p.encrypted) > 0 {
			pairs = append(pairs, *p)
		}
	}
	return pairs
}

// ratioInterval is the bootstrap interval of the ratio of the medians, encrypted to plain. Whole runs are drawn, with both
// of their groups: the moves of one run resemble each other, and so do two groups that were measured in the same minute.
// It is nil where nothing can be said: too few runs, which would seem certain only because they are few, or a pause of
// nothing, which nothing is a multiple of.
func ratioInterval(pairs []pair) *interval {
	if len(pairs) < leastRuns {
		return nil
	}
	for _, p := range pairs {
		for _, v := range p.plain {
			if v <= 0 {
				return nil
			}
		}
	}
	rnd := rand.New(rand.NewPCG(intervalSeed, 0))
	ratios := make([]float64, resamples)
	var plain, encrypted []float64
	for i := range ratios {
		plain, encrypted = plain[:0], encrypted[:0]
		for range pairs {
			p := pairs[rnd.IntN(len(pairs))]
			plain, encrypted = append(plain, p.plain...), append(encrypted, p.encrypted...)
		}
		ratios[i] = percentile(encrypted, 50) / percentile(plain, 50)
	}
	return &interval{Low: round(percentile(ratios, 2.5)), High: round(percentile(ratios, 97.5))}
}

// verdict is what an interval proves of a limit.
type verdict string

const (
	verdictWithin verdict = "within"
	verdictMissed verdict = "MISSED"
	// verdictOpen: the limit lies in the interval, or there is none. More runs may tell.
	verdictOpen verdict = "inconclusive"
)

func verdictOf(at *interval) verdict {
	switch {
	case at == nil:
		return verdictOpen
	case at.High <= slowerLimit:
		return verdictWithin
	case at.Low > slowerLimit:
		return verdictMissed
	}
	return verdictOpen
}
