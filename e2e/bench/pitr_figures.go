// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"text/tabwriter"
)

const (
	archiverLive   = "live"
	archiverFrozen = "frozen"
	// costLimit is how many commits there must be with the archiver, to those without.
	costLimit = 0.97
	// Memory is flat if the median of the last fifth is at most so much above that of the second fifth: the first is of a start.
	flatFactor, flatMiB = 1.15, 4.0
)

// pitrFigures are the output of `make bench-pitr`. Seconds and rates are said in the names.
type pitrFigures struct {
	Machine machine `json:"machine"`
	origin
	Cost  *pitrCost  `json:"cost,omitempty"`
	Point *pitrPoint `json:"point,omitempty"`
	// FailedParts are those that could not be measured to their end, and why.
	FailedParts  []string `json:"failedParts,omitempty"`
	WithinTarget bool     `json:"withinTarget"`
	Against      []string `json:"against,omitempty"`
}

// pitrCost compares commits with the archiver and with one that is frozen by SIGSTOP, on the same group and in turn.
type pitrCost struct {
	Connections  int     `json:"connections"`
	RowBytes     int     `json:"rowBytes"`
	PhaseSeconds float64 `json:"phaseSeconds"`
	// Rates are medians of the phases. The ratio is the geometric mean of those of the pairs: what changes from minute to minute, such as
	// a table that grows, changes for both phases of a pair.
	LiveCommitsPerSecond   float64 `json:"liveCommitsPerSecond"`
	FrozenCommitsPerSecond float64 `json:"frozenCommitsPerSecond"`
	LiveToFrozenRatio      float64 `json:"liveToFrozenRatio"`
	// Interval is where the ratio lies with 95 % certainty; Limit is what it must not be below.
	Interval *interval         `json:"interval95,omitempty"`
	Limit    float64           `json:"limit"`
	Verdict  verdict           `json:"verdict"`
	Failed   int64             `json:"failedRows"`
	Samples  []pitrPhaseSample `json:"samples"`
}

type pitrPhaseSample struct {
	Pair             int     `json:"pair"`
	Archiver         string  `json:"archiver"`
	CommitsPerSecond float64 `json:"commitsPerSecond"`
	P99CommitSeconds float64 `json:"p99CommitSeconds"`
	Uploads          int64   `json:"uploads"`
	StolenPercent    float64 `json:"stolenPercent"`
}

// pitrPoint is how old the recoverable point was, once a second. The archiver writes its status down every two seconds, so that the figures are up to
// two seconds above the truth.
type pitrPoint struct {
	IntervalSeconds  float64 `json:"intervalSeconds"`
	LimitSeconds     float64 `json:"limitSeconds"`
	RowsAsked        int     `json:"rowsAskedPerSecond"`
	RowBytes         int     `json:"rowBytes"`
	CommitsPerSecond float64 `json:"commitsPerSecond"`
	P99CommitSeconds float64 `json:"p99CommitSeconds"`
	Seconds          float64 `json:"seconds"`
	Looks            int     `json:"looks"`
	// Unread are looks that found no status.
	Unread     int     `json:"unreadLooks"`
	P50Seconds float64 `json:"p50Seconds"`
	P99Seconds float64 `json:"p99Seconds"`
	MaxSeconds float64 `json:"maxSeconds"`

	Archiver memoryFigures `json:"archiverMemory"`
	Sidecar  memoryFigures `json:"sidecarMemory"`

	Uploads       int64 `json:"uploads"`
	UploadsFailed int64 `json:"uploadsFailed"`
	ArchiveBytes  int64 `json:"archiveBytes"`
	Failed        int64 `json:"failedRows"`
	Restarts      int32 `json:"restarts"`
	Gaps          int   `json:"gaps"`
	// AllArchived is true if in the end the archive held all that the site had executed.
	AllArchived bool          `json:"allArchived"`
	Minutes     []pointMinute `json:"minutes"`
}

// memoryFigures are resident memory in MiB: medians of the second, the third and the last fifth of the time, and the most.
type memoryFigures struct {
	StartMiB  float64 `json:"startMiB"`
	MiddleMiB float64 `json:"middleMiB"`
	EndMiB    float64 `json:"endMiB"`
	MaxMiB    float64 `json:"maxMiB"`
	Flat      bool    `json:"flat"`
}

type pointMinute struct {
	P50Seconds       float64 `json:"p50Seconds"`
	MaxSeconds       float64 `json:"maxSeconds"`
	CommitsPerSecond float64 `json:"commitsPerSecond"`
	ArchiverMiB      float64 `json:"archiverMiB"`
	SidecarMiB       float64 `json:"sidecarMiB"`
}

func columnOf(looks []pointLook, of func(pointLook) float64) []float64 {
	out := make([]float64, len(looks))
	for i, l := range looks {
		out[i] = of(l)
	}
	return out
}

func ageOf(l pointLook) float64      { return l.age }
func archiverOf(l pointLook) float64 { return l.archiver }
func sidecarOf(l pointLook) float64  { return l.sidecar }

func minuteOf(looks []pointLook) pointMinute {
	ages := columnOf(looks, ageOf)
	return pointMinute{
		P50Seconds: round(percentile(ages, 50)), MaxSeconds: round(percentile(ages, 100)),
		ArchiverMiB: round(percentile(columnOf(looks, archiverOf), 50)), SidecarMiB: round(percentile(columnOf(looks, sidecarOf), 50)),
	}
}

func memoryOf(values []float64) memoryFigures {
	fifth := func(n int) float64 { return round(percentile(values[n*len(values)/5:(n+1)*len(values)/5], 50)) }
	m := memoryFigures{StartMiB: fifth(1), MiddleMiB: fifth(2), EndMiB: fifth(4), MaxMiB: round(percentile(values, 100))}
	m.Flat = len(values) >= 5 && m.EndMiB <= m.StartMiB*flatFactor+flatMiB
	return m
}

func (p *pitrPoint) sum(looks []pointLook) {
	ages := columnOf(looks, ageOf)
	p.Looks = len(looks)
	p.P50Seconds, p.P99Seconds, p.MaxSeconds = round(percentile(ages, 50)), round(percentile(ages, 99)), round(percentile(ages, 100))
	p.Archiver, p.Sidecar = memoryOf(columnOf(looks, archiverOf)), memoryOf(columnOf(looks, sidecarOf))
	if len(looks) > 0 {
		p.Uploads = looks[len(looks)-1].uploads - looks[0].uploads
	}
}

func (p *pitrPoint) judge() (against []string) {
	if p.P99Seconds > p.LimitSeconds {
		against = append(against, fmt.Sprintf("the recoverable point was %.1f s old at p99, and %.1f s is the limit", p.P99Seconds, p.LimitSeconds))
	}
	if p.Looks < 10*p.Unread {
		against = append(against, fmt.Sprintf("%d looks found no status", p.Unread))
	}
	for _, m := range []struct {
		who  string
		held memoryFigures
	}{{"archiver", p.Archiver}, {"sidecar", p.Sidecar}} {
		if !m.held.Flat {
			against = append(against, fmt.Sprintf("the memory of the %s grew from %.1f MiB to %.1f MiB", m.who, m.held.StartMiB, m.held.EndMiB))
		}
	}
	for _, c := range []struct {
		bad  bool
		says string
	}{
		{p.Failed > 0, fmt.Sprintf("%d rows were refused or not answered", p.Failed)}, {p.Restarts > 0, fmt.Sprintf("%d containers were started again", p.Restarts)},
		{p.Gaps > 0, fmt.Sprintf("the archive has %d gaps", p.Gaps)}, {!p.AllArchived, "in the end the archive did not hold all that was executed"},
		{p.CommitsPerSecond < 0.9*float64(p.RowsAsked), fmt.Sprintf("%.0f rows a second were written instead of %d", p.CommitsPerSecond, p.RowsAsked)},
	} {
		if c.bad {
			against = append(against, c.says)
		}
	}
	return against
}

// pairsOfPhases puts the phases of each pair together, the frozen one as what the live one is a multiple of.
func (c *pitrCost) pairsOfPhases() []pair {
	var pairs []pair
	byPair := map[int]int{}
	for _, s := range c.Samples {
		at, known := byPair[s.Pair]
		if !known {
			at = len(pairs)
			byPair[s.Pair], pairs = at, append(pairs, pair{})
		}
		if s.Archiver == archiverFrozen {
			pairs[at].plain = append(pairs[at].plain, s.CommitsPerSecond)
		} else {
			pairs[at].encrypted = append(pairs[at].encrypted, s.CommitsPerSecond)
		}
	}
	var whole []pair
	for _, p := range pairs {
		if len(p.plain) > 0 && len(p.encrypted) > 0 {
			whole = append(whole, p)
		}
	}
	return whole
}

// meanRatio is the geometric mean of the ratios of the pairs, and its 95 % bootstrap interval over whole pairs; 0 if nothing can be compared,
// no interval with fewer than leastRuns pairs.
func meanRatio(pairs []pair) (float64, *interval) {
	var logs []float64
	for _, p := range pairs {
		live, frozen := percentile(p.encrypted, 50), percentile(p.plain, 50)
		if live <= 0 || frozen <= 0 {
			return 0, nil
		}
		logs = append(logs, math.Log(live/frozen))
	}
	if len(logs) == 0 {
		return 0, nil
	}
	mean := func(draw func(int) float64) float64 {
		sum := 0.0
		for i := range logs {
			sum += draw(i)
		}
		return math.Exp(sum / float64(len(logs)))
	}
	all := round(mean(func(i int) float64 { return logs[i] }))
	if len(logs) < leastRuns {
		return all, nil
	}
	rnd := rand.New(rand.NewPCG(intervalSeed, 0))
	ratios := make([]float64, resamples)
	for i := range ratios {
		ratios[i] = mean(func(int) float64 { return logs[rnd.IntN(len(logs))] })
	}
	return all, &interval{Low: round(percentile(ratios, 2.5)), High: round(percentile(ratios, 97.5))}
}

func (c *pitrCost) judge() (against []string) {
	var live, frozen []float64
	for _, p := range c.pairsOfPhases() {
		live, frozen = append(live, p.encrypted...), append(frozen, p.plain...)
	}
	c.LiveCommitsPerSecond, c.FrozenCommitsPerSecond = percentile(live, 50), percentile(frozen, 50)
	c.LiveToFrozenRatio, c.Interval = meanRatio(c.pairsOfPhases())
	c.Limit = costLimit
	switch c.Verdict = verdictOpen; {
	case c.Interval == nil:
	case c.Interval.Low >= costLimit:
		c.Verdict = verdictWithin
	case c.Interval.High < costLimit:
		c.Verdict = verdictMissed
	}
	if c.Verdict != verdictWithin {
		against = append(against, fmt.Sprintf("commits with the archiver, to those without: %.3f, %s for at least %.2f", c.LiveToFrozenRatio, c.Verdict, costLimit))
	}
	if c.Failed > 0 {
		against = append(against, fmt.Sprintf("%d rows were refused or not answered while costs were measured", c.Failed))
	}
	return against
}

func (f *pitrFigures) judge() {
	f.Against = append([]string(nil), f.FailedParts...)
	if f.Cost == nil {
		f.Against = append(f.Against, "the cost was not measured")
	} else {
		f.Against = append(f.Against, f.Cost.judge()...)
	}
	if f.Point == nil {
		f.Against = append(f.Against, "the recoverable point was not watched")
	} else {
		f.Against = append(f.Against, f.Point.judge()...)
	}
	f.WithinTarget = len(f.Against) == 0
}

// read takes over an earlier file, if there is one. What failed then is measured again or not: it does not count.
func (f *pitrFigures) read(path string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, f)
	}
	if err != nil {
		return fmt.Errorf("read earlier figures: %w", err)
	}
	f.FailedParts = nil
	return nil
}

func (f *pitrFigures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nFIGURE\tGOT\tLIMIT")
	if c := f.Cost; c != nil {
		between := "unknown"
		if c.Interval != nil {
			between = fmt.Sprintf("%.3f to %.3f", c.Interval.Low, c.Interval.High)
		}
		fmt.Fprintf(w, "commits a second with the archiver\t%.0f\t\n", c.LiveCommitsPerSecond)
		fmt.Fprintf(w, "commits a second with it frozen\t%.0f\t\n", c.FrozenCommitsPerSecond)
		fmt.Fprintf(w, "ratio, %s\t%.3f (95 %%: %s)\tat least %.2f\n", c.Verdict, c.LiveToFrozenRatio, between, c.Limit)
	}
	if p := f.Point; p != nil {
		fmt.Fprintf(w, "age of the recoverable point over %.0f s, %d looks\tp50 %.1f s, p99 %.1f s, max %.1f s\tp99 %.0f s\n", p.Seconds, p.Looks, p.P50Seconds,
			p.P99Seconds, p.MaxSeconds, p.LimitSeconds)
		fmt.Fprintf(w, "memory of the archiver, MiB\t%.1f, %.1f, %.1f, max %.1f\tflat\n", p.Archiver.StartMiB, p.Archiver.MiddleMiB, p.Archiver.EndMiB, p.Archiver.MaxMiB)
		fmt.Fprintf(w, "memory of the sidecar, MiB\t%.1f, %.1f, %.1f, max %.1f\tflat\n", p.Sidecar.StartMiB, p.Sidecar.MiddleMiB, p.Sidecar.EndMiB, p.Sidecar.MaxMiB)
		fmt.Fprintf(w, "rows a second meanwhile\t%.0f\t%d asked\n", p.CommitsPerSecond, p.RowsAsked)
	}
	for _, text := range f.Against {
		fmt.Fprintf(w, "AGAINST: %s\t\t\n", text)
	}
	_ = w.Flush()
}
