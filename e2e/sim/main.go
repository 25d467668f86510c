// SPDX-License-Identifier: Apache-2.0

// Command sim runs the failover system in simulation: the real decision core, the real fence core and the shells' order
// of effects, over a model of everything around them. docs/internals/simulation.md says what is modelled and what is not.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	seeds := flag.Uint64("seeds", 20000, "how many seeds")
	from := flag.Uint64("from", 1, "the first seed")
	one := flag.Uint64("seed", 0, "run this seed only")
	flag.Uint64Var(&step, "step", 1, "the distance from one seed to the next")
	verbose := flag.Bool("v", false, "print the transcript of the run, or of the first failing seed")
	save := flag.String("save", "", "write the failing seed's transcript into this directory")
	workers := flag.Int("workers", 2, "how many seeds at once")
	keepOn := flag.Bool("all", false, "do not stop at the first failing seed")
	quiet := flag.Bool("quiet", false, "print the violation only")
	names := flag.Bool("scenarios", false, "list the scripted schedules")
	flag.Parse()
	if *names {
		printScenarios()
		return
	}
	if *one > 0 {
		*from, *seeds, *workers = *one, 1, 1
	}
	debug.SetGCPercent(800) // a world is small, and soon forgotten
	began := time.Now()
	total, failed := run(*from, *seeds, *workers, *keepOn)
	if !*quiet {
		print(total, time.Since(began))
	}
	if *one > 0 && *verbose {
		for _, line := range simulate(*one, true).transcript {
			fmt.Println(line)
		}
	}
	for _, f := range failed {
		fmt.Printf("FAIL seed %d: %s\n  make sim SEED=%d\n", f.seed, f.failure, f.seed)
	}
	if len(failed) > 0 {
		first := failed[0].seed
		if *verbose && *one == 0 {
			for _, line := range simulate(first, true).transcript {
				fmt.Println(line)
			}
		}
		if *save != "" {
			if err := saveTranscript(*save, first); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		os.Exit(1)
	}
}

func printScenarios() {
	for _, s := range scenarios() {
		fmt.Println(s.name)
	}
}

// tellEvery is after how many seeds it is told how far a run has come.
const tellEvery = 1000

// step lets a few seeds stand for a wide range.
var step uint64 = 1

// result is what one seed came to.
type result struct {
	seed    uint64
	failure *violation
}

// simulate runs one seed.
func simulate(seed uint64, verbose bool) *world {
	w := newWorld(seed, verbose)
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("seed %d at %s: %v\n%s", seed, w.now, r, debug.Stack()))
		}
	}()
	w.play()
	w.close()
	return w
}

// run runs seeds on several processors; each run is a world of its own.
func run(from, count uint64, workers int, keepOn bool) (stats, []result) {
	var next, played atomic.Uint64
	var stop atomic.Bool
	var mu sync.Mutex
	var total stats
	var failed []result
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			var mine stats
			for !stop.Load() {
				n := next.Add(1) - 1
				if n >= count {
					break
				}
				w := simulate(from+n*step, false)
				w.stats.runs = 1
				mine.add(w.stats)
				if done := played.Add(1); done%tellEvery == 0 {
					fmt.Fprintf(os.Stderr, "%d of %d seeds\n", done, count)
				}
				if w.failure == nil {
					continue
				}
				mu.Lock()
				failed = append(failed, result{from + n*step, w.failure})
				if keepOn {
					fmt.Printf("FAIL seed %d: %s\n", from+n*step, w.failure)
				}
				mu.Unlock()
				stop.Store(!keepOn)
			}
			mu.Lock()
			total.add(mine)
			mu.Unlock()
		})
	}
	all.Wait()
	return total, failed
}

func print(s stats, took time.Duration) {
	fmt.Printf("%d seeds in %s, %.1f seeds/s\n", s.runs, took.Round(time.Millisecond), float64(s.runs)/took.Seconds())
	fmt.Printf("%d faults, %d events, %d commits, %d openings, %d promotions, %d acknowledged transactions lost in emergency failovers\n",
		s.faults, s.events, s.commits, s.openings, s.promotions, s.lost)
	for _, name := range s.names() {
		fmt.Printf("  %9d  %s\n", s.named[name], name)
	}
}

// transcriptMost is how many lines of the beginning and of the end of a long transcript are kept.
const transcriptMost = 100

// saveTranscript writes the run of a seed down, so that `go test` runs it from now on.
func saveTranscript(dir string, seed uint64) error {
	w := simulate(seed, true)
	f, err := os.Create(fmt.Sprintf("%s/%d.txt", dir, seed))
	if err != nil {
		return fmt.Errorf("save transcript: %w", err)
	}
	for i, line := range w.transcript {
		if i == transcriptMost && len(w.transcript) > 2*transcriptMost {
			fmt.Fprintf(f, "          (%d lines are left out)\n", len(w.transcript)-2*transcriptMost)
		}
		if i < transcriptMost || i >= len(w.transcript)-transcriptMost {
			fmt.Fprintln(f, line)
		}
	}
	return f.Close()
}
