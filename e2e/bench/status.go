// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	// statusCalls is how often each command line is run.
	statusCalls = 50
	// statusTargetMillis is within how long `kubectl mfg status` answers.
	statusTargetMillis = 300
)

// statusFigures are the output of the measurement of `kubectl mfg status`.
type statusFigures struct {
	Machine    machine     `json:"machine"`
	Commit     string      `json:"commit"`
	MeasuredAt time.Time   `json:"measuredAt"`
	Commands   []statusRow `json:"commands"`
	// WithinTarget is true if every command that has a target met it.
	WithinTarget bool `json:"withinTarget"`
}

// statusRow is one command line.
type statusRow struct {
	Command string `json:"command"`
	Calls   int    `json:"calls"`
	// FirstMillis is of a call before all others, which finds nothing in any cache.
	FirstMillis  float64 `json:"firstMillis"`
	P50Millis    float64 `json:"p50Millis"`
	P99Millis    float64 `json:"p99Millis"`
	MaxMillis    float64 `json:"maxMillis"`
	TargetMillis float64 `json:"targetMillis,omitempty"`
	// Met says whether the p99 is within the target; without one it is true.
	Met           bool      `json:"met"`
	SamplesMillis []float64 `json:"samplesMillis"`
}

// status measures how long a person waits for the status of a group: whole processes, from the command to its end.
func (b *bench) status(ctx context.Context) error {
	calls := statusCalls
	if b.options.runs > 0 {
		calls = b.options.runs
	}
	g, err := b.stage.EnsureGroup(ctx, namespace, group, b.spec())
	if err != nil {
		return err
	}
	if _, err := g.AwaitReady(ctx, bringUp); err != nil {
		return err
	}
	f := statusFigures{Machine: thisMachine(), Commit: b.commit, MeasuredAt: time.Now().UTC().Truncate(time.Second), WithinTarget: true}
	for _, c := range []statusRow{
		{Command: "kubectl mfg status " + group + " -n " + namespace, TargetMillis: statusTargetMillis},
		{Command: "kubectl mfg status " + group + " -n " + namespace + " -o json", TargetMillis: statusTargetMillis},
		{Command: "kubectl-mfg status " + group + " -n " + namespace}, // what of it is not kubectl's own start
		{Command: "kubectl get mysqlfailovergroup " + group + " -n " + namespace},
	} {
		if err := c.measure(ctx, b.stage, calls); err != nil {
			return err
		}
		f.Commands = append(f.Commands, c)
		f.WithinTarget = f.WithinTarget && c.Met
	}
	if err := writeJSON(b.options.out, f); err != nil {
		return err
	}
	f.print(b.out)
	b.stage.Say("wrote %s", b.options.out)
	return nil
}

// measure runs a command line so many times, and once before.
func (r *statusRow) measure(ctx context.Context, s *stage.Stage, calls int) error {
	for n := range calls + 1 {
		took, err := timed(ctx, s, strings.Fields(r.Command))
		if err != nil {
			return fmt.Errorf("%s: %w", r.Command, err)
		}
		if n == 0 {
			r.FirstMillis = took
			continue
		}
		r.SamplesMillis = append(r.SamplesMillis, took)
	}
	r.sum()
	return nil
}

func (r *statusRow) sum() {
	r.Calls = len(r.SamplesMillis)
	r.P50Millis, r.P99Millis, r.MaxMillis = percentile(r.SamplesMillis, 50), percentile(r.SamplesMillis, 99), percentile(r.SamplesMillis, 100)
	r.Met = r.Calls > 0 && (r.TargetMillis == 0 || r.P99Millis <= r.TargetMillis)
}

// timed runs a program of the lab, or of this checkout, to its end.
func timed(ctx context.Context, s *stage.Stage, argv []string) (millis float64, err error) {
	plugin, err := s.Program("kubectl-mfg")
	if err != nil {
		return 0, err
	}
	program := filepath.Join(s.Lab.Tools(), argv[0])
	if argv[0] == filepath.Base(plugin) {
		program = plugin
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = pluginPath(s.Lab.Environ(), filepath.Dir(plugin)), &out, &out
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out.String())
	}
	return round(time.Since(began).Seconds() * 1000), nil
}

// pluginPath puts a directory at the beginning of PATH, where kubectl looks for plugins.
func pluginPath(env []string, dir string) []string {
	i := -1
	for j, v := range env { // the last one counts
		if strings.HasPrefix(v, "PATH=") {
			i = j
		}
	}
	if i < 0 {
		return append(env, "PATH="+dir)
	}
	env = slices.Clone(env)
	env[i] = "PATH=" + dir + ":" + strings.TrimPrefix(env[i], "PATH=")
	return env
}

func (f *statusFigures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nCOMMAND\tCALLS\tFIRST\tP50\tP99\tMAX\tTARGET\tVERDICT")
	for _, r := range f.Commands {
		target, verdict := "-", "-"
		if r.TargetMillis > 0 {
			target, verdict = fmt.Sprintf("p99 %.0f", r.TargetMillis), "within"
			if !r.Met {
				verdict = "MISSED"
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%s\n", r.Command, r.Calls, r.FirstMillis, r.P50Millis, r.P99Millis, r.MaxMillis, target, verdict)
	}
	_ = w.Flush()
}
