// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
	// ImportPath and build events tell of packages that do not compile.
	ImportPath string
}

// reader turns the events of `go test -json` into readable output and counts.
type reader struct {
	out          io.Writer
	live, noSkip bool

	result  result
	running map[string]bool
	said    map[string][]string
	located map[string][]string // the last lines of a test that name a place in it
	failed  map[string]bool     // packages in which a test failed
}

const module = "github.com/mysql-mfg/mfg/"

// test runs `go test -json` with more arguments.
func (r *reader) test(ctx context.Context, part string, args []string) result {
	began := time.Now()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = r.out
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return result{Failed: []string{fmt.Sprintf("%s (%v)", part, err)}}
	}
	r.read(pipe)
	if why := r.unseen(cmd.Wait()); why != "" {
		_, _ = fmt.Fprintln(r.out, why)
		r.result.Failed = append(r.result.Failed, why)
	}
	verdict := "ok   "
	if len(r.result.Failed) > 0 {
		verdict = "FAIL "
	}
	took := time.Since(began).Round(100 * time.Millisecond)
	_, _ = fmt.Fprintf(r.out, "%s %-12s %6s  %d passed, %d failed\n", verdict, part, took, r.result.Passed, len(r.result.Failed))
	r.result.Seconds = took.Seconds()
	slices.SortStableFunc(r.result.Tests, bySeconds)
	return r.result
}

const noTest = "no test ran: the packages, -tags or -run fit none"

// unseen says what is wrong with a part of whose tests none failed. One in which nothing ran at all has tested nothing: a
// test was renamed, or a build tag got lost.
func (r *reader) unseen(err error) string {
	switch {
	case len(r.result.Failed) > 0:
	case err != nil:
		return fmt.Sprintf("go test (%v)", err)
	case r.result.Passed+len(r.result.Skipped) == 0:
		return noTest
	}
	return ""
}

func (r *reader) read(in io.Reader) {
	r.running, r.failed = map[string]bool{}, map[string]bool{}
	r.said, r.located = map[string][]string{}, map[string][]string{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			_, _ = fmt.Fprintln(r.out, lines.Text())
			continue
		}
		if e.Package == "" {
			e.Package = e.ImportPath
		}
		e.Package = strings.TrimPrefix(e.Package, module)
		r.take(e)
	}
	// What still runs when the stream ends was cut off by a panic or a timeout of its package.
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		r.result.Failed = append(r.result.Failed, name+" (did not finish)")
	}
}

func (r *reader) take(e event) {
	name := strings.TrimSuffix(e.Package+" "+e.Test, " ")
	switch e.Action {
	case "run":
		r.running[name] = true
	case "output", "build-output":
		r.output(name, e)
	case "pass", "fail", "skip":
		delete(r.running, name)
		if e.Test == "" {
			r.endPackage(e)
			return
		}
		r.endTest(name, e)
	case "build-fail":
		r.result.Failed = append(r.result.Failed, e.Package+" (does not compile)")
		r.failed[e.Package] = true
		r.tell(name)
	}
}

// output keeps what a test says until it is known whether anybody needs to read it.
func (r *reader) output(name string, e event) {
	r.locate(name, e.Output)
	if r.live && e.Test != "" && !strings.HasPrefix(e.Output, "=== ") {
		_, _ = fmt.Fprint(r.out, e.Output)
		return
	}
	r.said[name] = append(r.said[name], e.Output)
}

// place begins what t.Error, t.Fatal and t.Log print.
var place = regexp.MustCompile(`^\s+\w+_test\.go:\d+: `)

// The closing words repeat so much of a failed test: it may be thousands of lines up, or in a part that a log has lost.
const (
	repeated     = 4
	repeatedLine = 400 // bytes
)

func (r *reader) locate(name, line string) {
	if !place.MatchString(line) {
		return
	}
	line = strings.TrimSpace(line)
	line = strings.ToValidUTF8(line[:min(len(line), repeatedLine)], "")
	r.located[name] = append(r.located[name], line)
	r.located[name] = r.located[name][max(0, len(r.located[name])-repeated):]
}

func (r *reader) tell(name string) {
	for _, line := range r.said[name] {
		_, _ = fmt.Fprint(r.out, line)
	}
	delete(r.said, name)
}

func (r *reader) endTest(name string, e event) {
	if e.Action != "skip" {
		r.result.Tests = append(r.result.Tests, timing{name, e.Elapsed})
	}
	switch {
	case e.Action == "pass":
		r.result.Passed++
	case e.Action == "skip" && !r.noSkip:
		r.result.Skipped = append(r.result.Skipped, name)
	case e.Action == "skip":
		r.fail(name+" (skipped)", e)
	default:
		r.fail(name, e)
	}
	if e.Action != "pass" {
		r.tell(name)
	}
	delete(r.said, name)
	delete(r.located, name)
}

func (r *reader) fail(name string, e event) {
	r.result.Failed = append(r.result.Failed, name)
	r.failed[e.Package] = true
	for _, line := range r.located[strings.TrimSuffix(e.Package+" "+e.Test, " ")] {
		r.result.Said = append(r.result.Said, name+": "+line)
	}
}

// endPackage counts a package that failed though none of its tests did: a panic, a failing TestMain, a timeout.
func (r *reader) endPackage(e event) {
	switch e.Action {
	case "fail":
		r.tell(e.Package)
		if !r.failed[e.Package] {
			r.result.Failed = append(r.result.Failed, e.Package)
		}
		_, _ = fmt.Fprintf(r.out, "FAIL  %s %.1fs\n", e.Package, e.Elapsed)
	case "pass":
		_, _ = fmt.Fprintf(r.out, "ok    %s %.1fs\n", e.Package, e.Elapsed)
	}
	delete(r.said, e.Package)
}
