// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The outcomes of a scenario.
const (
	outcomePassed = "passed"
	outcomeFailed = "failed"
)

// results is the whole output.
type results struct {
	// Complete is true if every scenario of this program has run, all with the same build of operator and sidecar.
	Complete bool      `json:"complete"`
	Build    string    `json:"build"`
	Finished time.Time `json:"finished"`
	Passed   int       `json:"passed"`
	Failed   int       `json:"failed"`
	// Seconds add up what the scenarios took, with their preparation.
	Seconds   float64  `json:"seconds"`
	Scenarios []result `json:"scenarios"`
}

// result is what came of one scenario.
type result struct {
	Name    string `json:"name"`
	Proves  string `json:"proves"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
	// Failover lists the moves of the role, empty if it stayed.
	Failover string `json:"failover"`
	// Held are the sites that were held for a person at the end, because they have transactions that were lost.
	Held []string `json:"held,omitempty"`
	// PauseSeconds is the clients' longest pause after the first fault.
	PauseSeconds float64 `json:"pauseSeconds"`
	Acknowledged int     `json:"acknowledged"`
	// Lost are acknowledged rows that the active site lacks, Reported what status.failovers says was lost.
	Lost     int     `json:"lost"`
	Reported int64   `json:"reported"`
	Overlaps int     `json:"overlaps"`
	Seconds  float64 `json:"seconds"`
}

// line tells a result in one line.
func (r result) line() string {
	if r.Outcome != outcomePassed {
		return fmt.Sprintf("FAILED %s in %.0f s: %s", r.Name, r.Seconds, r.Error)
	}
	moved := r.Failover
	if moved == "" {
		moved = "the role stayed"
	}
	if len(r.Held) > 0 {
		moved += fmt.Sprintf(", %v held", r.Held)
	}
	return fmt.Sprintf("passed %s in %.0f s: %s, pause %.2f s, %d rows acknowledged, %d lost, %d reported",
		r.Name, r.Seconds, moved, r.PauseSeconds, r.Acknowledged, r.Lost, r.Reported)
}

func newResults(build string) results { return results{Build: build, Scenarios: []result{}} }

// carryOn takes what an unfinished run of the same build has shown.
func (r *results) carryOn(path string) error {
	before, err := readResults(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if before.Build != r.Build {
		return fmt.Errorf("the results in %s are of another build: run without -continue", path)
	}
	r.Scenarios = before.Scenarios
	return nil
}

// passed tells whether a scenario has passed already.
func (r *results) passed(name string) bool {
	return slices.ContainsFunc(r.Scenarios, func(s result) bool { return s.Name == name && s.Outcome == outcomePassed })
}

func (r *results) add(got result) {
	r.Scenarios = slices.DeleteFunc(r.Scenarios, func(s result) bool { return s.Name == got.Name })
	r.Scenarios = append(r.Scenarios, got)
}

// write counts and writes; all are the scenarios that a complete run has.
func (r *results) write(path string, all []Scenario) error {
	r.Finished = time.Now().UTC().Truncate(time.Second)
	r.Passed, r.Failed, r.Seconds = 0, 0, 0
	for _, s := range r.Scenarios {
		r.Seconds = rounded(r.Seconds + s.Seconds)
		if s.Outcome == outcomePassed {
			r.Passed++
		} else {
			r.Failed++
		}
	}
	r.Complete = r.missing(all) == nil
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// missing names the scenarios without a result.
func (r *results) missing(all []Scenario) []string {
	var names []string
	for _, sc := range all {
		if !slices.ContainsFunc(r.Scenarios, func(s result) bool { return s.Name == sc.Name }) {
			names = append(names, sc.Name)
		}
	}
	return names
}

func readResults(path string) (results, error) {
	var r results
	raw, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read results: %w", err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("read results in %s: %w", path, err)
	}
	return r, nil
}

func rounded(seconds float64) float64 { return math.Round(seconds*100) / 100 }

// buildSum changes with the programs in the images of operator and sidecar.
func buildSum(labDir string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"operator", "sidecar"} {
		f, err := os.Open(filepath.Join(labDir, "images", name))
		if err != nil {
			return "", fmt.Errorf("read image: %w", err)
		}
		_, err = io.Copy(sum, f)
		_ = f.Close()
		if err != nil {
			return "", fmt.Errorf("read image: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// The part of the document between these marks belongs to this program.
const (
	tableBegin = "<!-- generated by `make chaos-table` from out/chaos.json; do not edit -->"
	tableEnd   = "<!-- end of the generated part -->"
)

// writeTable puts the results of a complete run into the document.
func writeTable(from, to string, all []Scenario) error {
	r, err := readResults(from)
	if err != nil {
		return err
	}
	if missing := r.missing(all); !r.Complete || len(missing) > 0 {
		return fmt.Errorf("%s is not of a complete run, there is nothing of %v: `make chaos` first", from, missing)
	}
	raw, err := os.ReadFile(to)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	before, rest, ok := strings.Cut(string(raw), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return fmt.Errorf("%s has no place for the table", to)
	}
	text := before + tableBegin + "\n\n" + r.table(all) + "\n" + tableEnd + after
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// table is the results in the order of the scenarios.
func (r results) table(all []Scenario) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d scenarios, %d passed, %d failed, in %.0f minutes; finished %s, build %s.\n\n", len(all), r.Passed, r.Failed,
		r.Seconds/60, r.Finished.Format("2006-01-02 15:04 MST"), r.Build)
	b.WriteString("| scenario | what it proves | outcome | failover | pause | acknowledged | lost | reported |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, sc := range all {
		i := slices.IndexFunc(r.Scenarios, func(s result) bool { return s.Name == sc.Name })
		s := r.Scenarios[i]
		moved := s.Failover
		if moved == "" {
			moved = "none"
		}
		if len(s.Held) > 0 {
			moved += "; " + strings.Join(s.Held, ", ") + " held"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %.2f s | %d | %d | %d |\n", s.Name, s.Proves, s.Outcome, moved,
			s.PauseSeconds, s.Acknowledged, s.Lost, s.Reported)
	}
	return b.String()
}
