// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	kept "github.com/mysql-mfg/mfg/e2e/writer/session"
)

// Limits of what a cache may cost.
const (
	cacheP50Limit = 0.3
	cacheP99Limit = 1.0
	// cacheSlower is how much longer MySQL's pause may be with a cache.
	cacheSlower = 1.1
)

// cacheFigures is the whole output.
type cacheFigures struct {
	Machine   machine         `json:"machine"`
	Planned   *cachePlanned   `json:"planned,omitempty"`
	Emergency *cacheEmergency `json:"emergency,omitempty"`
	// FailedParts were not measured to their end.
	FailedParts []string `json:"failedParts,omitempty"`
	// WithinTarget is true if everything that was measured is.
	WithinTarget bool     `json:"withinTarget"`
	Against      []string `json:"against,omitempty"`
}

// cacheSample is one move of a cache, as its sessions saw it.
type cacheSample struct {
	Run int `json:"run"`
	// Seconds is the pause of the unluckiest session, MergedSeconds that of all of them together.
	Seconds       float64 `json:"seconds"`
	MergedSeconds float64 `json:"mergedSeconds"`
	// Whole is false if a session was not seen to come back.
	Whole bool `json:"whole"`
}

// cachePlanned are planned failovers of a group without a cache and of one with it, in turn.
type cachePlanned struct {
	origin
	// WriterRate is how many commits a second the clients of MySQL asked for, behind the Service.
	WriterRate int `json:"writerRate"`
	// Moves is how often sessions changed the server, SessionsWritten how many sessions there were, SessionsLost how many of them lost
	// a key that was acknowledged, KeysLost how many keys.
	Moves           int `json:"moves"`
	SessionsWritten int `json:"sessionsWritten"`
	SessionsLost    int `json:"sessionsLost"`
	KeysLost        int `json:"keysLost"`
	// WritesAcked counts the writes of sessions, WritesAtOthers moments at which a cache that was not the master with the traffic may
	// have taken writes.
	WritesAcked    int `json:"writesAcked"`
	WritesAtOthers int `json:"writesAtOthers"`
	// Records counts what the group wrote down of its moves; Unpreserved are those that say that sessions were lost.
	Records     int      `json:"records"`
	Unpreserved []string `json:"unpreserved,omitempty"`

	CacheP50Seconds float64       `json:"cacheP50Seconds"`
	CacheP99Seconds float64       `json:"cacheP99Seconds"`
	CacheMaxSeconds float64       `json:"cacheMaxSeconds"`
	MergedP50       float64       `json:"cacheMergedP50Seconds"`
	CacheSamples    []cacheSample `json:"cacheSamples"`

	Without pauseOfArm `json:"without"`
	With    pauseOfArm `json:"with"`
	// Ratio compares the medians of what MySQL's clients saw, OperatorRatio those of what the operator measured, which is finer, and is
	// what is judged.
	Ratio         float64   `json:"withToWithoutRatio"`
	OperatorRatio float64   `json:"withToWithoutOperatorRatio"`
	Interval      *interval `json:"interval95,omitempty"`
	Verdict       verdict   `json:"verdict"`

	Targets      []keyringLimit `json:"targets"`
	FailedRuns   []string       `json:"failedRuns,omitempty"`
	Against      []string       `json:"against,omitempty"`
	WithinTarget bool           `json:"withinTarget"`

	// noted is the last promotion that was counted.
	noted v1alpha1.CachePromotion
}

// note counts what the group has on record of a move.
func (p *cachePlanned) note(group *v1alpha1.MysqlFailoverGroup) {
	if group.Status.Cache == nil || group.Status.Cache.LastPromotion == nil {
		p.Unpreserved = append(p.Unpreserved, "nothing is on record")
		return
	}
	last := *group.Status.Cache.LastPromotion
	if last.At.Equal(&p.noted.At) {
		p.Unpreserved = append(p.Unpreserved, "a move left no record")
		return
	}
	p.noted = last
	p.Records++
	if !last.SessionsPreserved {
		p.Unpreserved = append(p.Unpreserved, fmt.Sprintf("%s to %s by %s: %s", last.Kind, last.To, last.Method, last.Reason))
	}
}

// take adds what the sessions of one run saw.
func (p *cachePlanned) take(run int, j journal.Journal, pauses []cacheSample) {
	v := kept.Judge(j)
	p.Moves += len(pauses)
	p.SessionsWritten += v.Sessions
	p.SessionsLost += v.LostSessions
	p.KeysLost += len(v.Lost)
	p.WritesAcked += v.Acked
	p.WritesAtOthers += len(v.Overlaps)
	for _, s := range pauses {
		s.Run = run
		p.CacheSamples = append(p.CacheSamples, s)
	}
}

// judge sums the part up and draws its verdict.
func (p *cachePlanned) judge() {
	p.Without, p.With = pauses(outcome{samples: p.Without.Samples}), pauses(outcome{samples: p.With.Samples})
	var seconds, merged []float64
	p.CacheMaxSeconds = 0
	wrong := []string{}
	for _, s := range p.CacheSamples {
		seconds, merged = append(seconds, s.Seconds), append(merged, s.MergedSeconds)
		p.CacheMaxSeconds = max(p.CacheMaxSeconds, s.Seconds)
		if !s.Whole {
			wrong = append(wrong, fmt.Sprintf("a session of run %d was not seen to come back", s.Run))
		}
	}
	p.CacheP50Seconds, p.CacheP99Seconds, p.MergedP50 = percentile(seconds, 50), percentile(seconds, 99), percentile(merged, 50)
	p.Ratio = ratio(p.With.P50Seconds, p.Without.P50Seconds)
	p.OperatorRatio = ratio(p.With.OperatorP50Seconds, p.Without.OperatorP50Seconds)
	p.Interval = ratioInterval(pairsOf(p.Without.Samples, p.With.Samples, operatorPause))
	p.Verdict = verdictOf(p.Interval)
	p.Targets = []keyringLimit{
		limited("sessionsLost", 0, float64(p.SessionsLost)),
		limited("cacheP50Seconds", cacheP50Limit, p.CacheP50Seconds),
		limited("cacheP99Seconds", cacheP99Limit, p.CacheP99Seconds),
		limited("withToWithoutOperatorRatio", cacheSlower, p.OperatorRatio),
	}
	met := p.Moves > 0
	for _, t := range p.Targets {
		met = met && t.Met
	}
	for _, count := range []struct {
		what string
		n    int
	}{
		{"%d runs failed", len(p.FailedRuns)},
		{"a cache without the traffic took writes %d times", p.WritesAtOthers},
		{"%d acknowledged rows are missing", p.Without.AckedLost + p.With.AckedLost},
		{"two sites accepted commits at the same time %d times", p.Without.WriterOverlaps + p.With.WriterOverlaps},
		{"%d moves have no record, or one that says otherwise", len(p.Unpreserved)},
	} {
		if count.n > 0 {
			wrong = append(wrong, fmt.Sprintf(count.what, count.n))
		}
	}
	p.Against = wrong
	p.WithinTarget = met && len(wrong) == 0 && p.Verdict == verdictWithin
}

// judge draws the verdict over all parts that are there.
func (f *cacheFigures) judge() {
	f.Against = nil
	if p := f.Planned; p != nil {
		p.judge()
		if !p.WithinTarget {
			f.Against = append(f.Against, fmt.Sprintf("planned: MySQL's pause %s; %s", p.Verdict, strings.Join(p.Against, "; ")))
		}
	}
	if e := f.Emergency; e != nil {
		e.judge()
		f.Against = append(f.Against, e.Against...)
	}
	f.Against = append(f.Against, f.FailedParts...)
	f.WithinTarget = len(f.Against) == 0 && f.Planned != nil && f.Emergency != nil
}

func (f *cacheFigures) read(path string) error {
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
	return nil
}

// print prints the tables with the verdicts.
func (f *cacheFigures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nWHAT\tMEASURED\tTARGET\tVERDICT")
	if p := f.Planned; p != nil {
		for _, t := range p.Targets {
			fmt.Fprintf(w, "%s, %d moves\t%.3f\t%.3f\t%s\n", t.Figure, p.Moves, t.Got, t.Limit, said(t.Met))
		}
		at := "no interval"
		if p.Interval != nil {
			at = fmt.Sprintf("95 %%: %.3f to %.3f", p.Interval.Low, p.Interval.High)
		}
		fmt.Fprintf(w, "MySQL's planned pause (medians of %d and %d, %d commits/s asked for)\toperator's %.3f s without, %.3f s with; clients' %.3f s and %.3f s (%s)\t%.2f\t%s\n",
			p.Without.Runs, p.With.Runs, p.WriterRate, p.Without.OperatorP50Seconds, p.With.OperatorP50Seconds, p.Without.P50Seconds, p.With.P50Seconds,
			at, cacheSlower, p.Verdict)
	}
	if e := f.Emergency; e != nil {
		e.print(w)
	}
	_ = w.Flush()
	for _, text := range f.Against {
		fmt.Fprintf(out, "not within: %s\n", text)
	}
}

// dir is where the journals of the sessions of one run are kept.
func (k *cacheBench) dir(run int) string {
	path := filepath.Join(k.stage.Repo, "out", "journals", fmt.Sprintf("cache-%d", run))
	_ = os.MkdirAll(path, 0o755) // what is kept there fails with a better error
	return path
}
