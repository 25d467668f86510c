// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		noSkip bool
		in     string
		want   result
		shown  string
	}{
		"passes": {
			reason: "a test and its subtest are two",
			in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"nobody reads this\n"}
{"Action":"pass","Package":"p","Test":"TestA/sub","Elapsed":0.5}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.75}
{"Action":"pass","Package":"p","Elapsed":1}`,
			want: result{Passed: 2, Tests: []timing{{"p TestA/sub", 0.5}, {"p TestA", 0.75}}}, shown: "ok    p 1.0s\n",
		},
		"fails": {
			reason: "a failed test says why, and its package is not counted on top",
			in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"because\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`,
			want: result{Failed: []string{"p TestA"}, Tests: []timing{{"p TestA", 0}}}, shown: "because\nFAIL  p 0.0s\n",
		},
		"says why": {
			reason: "the last words of a failed test are kept, those of another are not",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: first\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    a_test.go:9: of another\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:2: ` + strings.Repeat("x", repeatedLine) + `\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:3: of no test\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:4: a\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:5: b\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:6: c\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}`,
			want: result{
				Passed: 1, Failed: []string{"p TestA"}, Tests: []timing{{"p TestA", 0}, {"p TestB", 0}},
				Said: []string{
					"p TestA: a_test.go:2: " + strings.Repeat("x", repeatedLine-len("a_test.go:2: ")),
					"p TestA: a_test.go:4: a", "p TestA: a_test.go:5: b", "p TestA: a_test.go:6: c",
				},
			},
			shown: "    a_test.go:1: first\n    a_test.go:2: " + strings.Repeat("x", repeatedLine) + "\na_test.go:3: of no test\n    a_test.go:4: a\n    a_test.go:5: b\n    a_test.go:6: c\n",
		},
		"does not compile": {
			reason: "there is no test to fail",
			in: `{"ImportPath":"p","Action":"build-output","Output":"syntax error\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p"}`,
			want: result{Failed: []string{"p (does not compile)"}}, shown: "syntax error\nFAIL  p 0.0s\n",
		},
		"panics": {
			reason: "the test that ran is the one that failed",
			in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"panic: x\n"}
{"Action":"fail","Package":"p"}`,
			want: result{Failed: []string{"p", "p TestA (did not finish)"}}, shown: "panic: x\nFAIL  p 0.0s\n",
		},
		"skip":           {reason: "named, not hidden", in: `{"Action":"skip","Package":"p","Test":"T"}`, want: result{Skipped: []string{"p T"}}},
		"skip forbidden": {reason: "a lab test never skips", noSkip: true, in: `{"Action":"skip","Package":"p","Test":"T"}`, want: result{Failed: []string{"p T (skipped)"}}},
		"no JSON":        {reason: "shown as it is", in: "go: downloading x", shown: "go: downloading x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := &reader{out: &out, noSkip: tt.noSkip}
			r.read(strings.NewReader(tt.in))
			if diff := cmp.Diff(tt.want, r.result); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.shown, out.String()); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

// A part in which nothing failed is still no success if go test says otherwise, or if nothing ran.
func TestGoTest(t *testing.T) {
	const (
		pass = `{"Action":"pass","Package":"p","Test":"TestA"}`
		skip = `{"Action":"skip","Package":"p","Test":"TestA"}`
		fail = `{"Action":"fail","Package":"p","Test":"TestA"}`
		none = `{"Action":"output","Package":"p","Output":"testing: warning: no tests to run\n"}
{"Action":"pass","Package":"p"}`
	)
	for name, tt := range map[string]struct {
		said   string
		code   string
		noSkip bool
		want   result
		shown  string
	}{
		"passes":                    {said: pass, code: "0", want: result{Passed: 1}, shown: "1 passed, 0 failed"},
		"fails":                     {said: fail, code: "1", want: result{Failed: []string{"p TestA"}}, shown: "0 passed, 1 failed"},
		"only go test fails":        {said: pass, code: "3", want: result{Passed: 1, Failed: []string{"go test (exit status 3)"}}, shown: "exit status 3"},
		"no such flag":              {code: "2", want: result{Failed: []string{"go test (exit status 2)"}}, shown: "exit status 2"},
		"no such test":              {said: none, code: "0", want: result{Failed: []string{noTest}}, shown: noTest},
		"no package":                {code: "0", want: result{Failed: []string{noTest}}, shown: noTest},
		"all skipped":               {said: skip, code: "0", want: result{Skipped: []string{"p TestA"}}, shown: "0 passed, 0 failed"},
		"all skipped, which is not": {said: skip, code: "0", noSkip: true, want: result{Failed: []string{"p TestA (skipped)"}}, shown: "0 passed, 1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			script := "#!/bin/sh\nprintf '%s\\n' '" + tt.said + "'\nexit " + tt.code + "\n"
			if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin)
			var out bytes.Buffer
			r := &reader{out: &out, noSkip: tt.noSkip}
			got := r.test(t.Context(), "x", nil)
			got.Seconds, got.Tests = 0, nil // TestRead and TestTimes look at them
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if !strings.Contains(out.String(), tt.shown) {
				t.Errorf("shown:\n%s\nwant %q", out.String(), tt.shown)
			}
			if wrong := len(tt.want.Failed) > 0; wrong == strings.Contains(out.String(), "ok    x") {
				t.Errorf("the verdict is wrong:\n%s", out.String())
			}
		})
	}
}

func TestTotal(t *testing.T) {
	dir := t.TempDir()
	if err := record(dir, "a", result{Passed: 2, Seconds: 3, Tests: []timing{{"p TestA", 2}, {"p TestA/sub", 1.5}, {"p TestB", 0.5}}}); err != nil {
		t.Error(err)
	}
	if err := record(dir, "b", result{Passed: 1, Failed: []string{"TestX"}, Said: []string{"TestX: x_test.go:1: because"}}); err == nil {
		t.Error("a failed part must fail")
	}
	const times = "time a                 3.0 s\ntime together          3.0 s\nslow      1.5 s  a: p TestA/sub\nslow      0.5 s  a: p TestB\n"
	var out bytes.Buffer
	if err := total(&out, dir, 0, []string{"a"}); err != nil || out.String() != times+"2 passed, 0 failed\n" {
		t.Errorf("total = %q, %v", out.String(), err)
	}
	out.Reset()
	err := total(&out, dir, 2.5, []string{"a", "b", "never"})
	want := "said b: TestX: x_test.go:1: because\nfailed b: TestX\nfailed never (did not finish)\n3 passed, 2 failed\n"
	// Parts overlap: what was measured counts, not the sum.
	if err == nil || !strings.HasSuffix(out.String(), want) || !strings.Contains(out.String(), "time together          2.5 s\n") {
		t.Errorf("total = %q, %v", out.String(), err)
	}
}

// What a test with subtests took is told of these, and of packages whose path has slashes each test counts by itself.
func TestSlowest(t *testing.T) {
	tests := []timing{
		{"e2e/a TestA", 9}, {"e2e/a TestA/x", 5}, {"e2e/a TestA/x/1", 4}, {"e2e/a TestA/y", 1}, {"e2e/a TestB", 3}, {"e2e TestC", 2},
	}
	want := []timing{{"e2e/a TestA/x/1", 4}, {"e2e/a TestB", 3}, {"e2e TestC", 2}}
	if diff := cmp.Diff(want, slowest(tests, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := slowest(tests, 99); len(got) != 4 {
		t.Errorf("%d tests hold no others, want 4: %v", len(got), got)
	}
}

func TestStep(t *testing.T) {
	var out bytes.Buffer
	if got := step(t.Context(), &out, "x", []string{"true"}); got.Passed != 1 {
		t.Errorf("result = %+v", got)
	}
	if got := step(t.Context(), &out, "x", []string{"false"}); len(got.Failed) != 1 {
		t.Errorf("result = %+v", got)
	}
}
