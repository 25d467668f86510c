// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
{"Action":"pass","Package":"p","Test":"TestA/sub"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":1}`,
			want: result{Passed: 2}, shown: "ok    p 1.0s\n",
		},
		"fails": {
			reason: "a failed test says why, and its package is not counted on top",
			in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"because\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`,
			want: result{Failed: []string{"p TestA"}}, shown: "because\nFAIL  p 0.0s\n",
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

func TestTotal(t *testing.T) {
	dir := t.TempDir()
	if err := record(dir, "a", result{Passed: 2}); err != nil {
		t.Error(err)
	}
	if err := record(dir, "b", result{Passed: 1, Failed: []string{"TestX"}}); err == nil {
		t.Error("a failed part must fail")
	}
	var out bytes.Buffer
	if err := total(&out, dir, []string{"a"}); err != nil || out.String() != "2 passed, 0 failed\n" {
		t.Errorf("total = %q, %v", out.String(), err)
	}
	out.Reset()
	err := total(&out, dir, []string{"a", "b", "never"})
	want := "failed b: TestX\nfailed never (did not finish)\n3 passed, 2 failed\n"
	if err == nil || out.String() != want {
		t.Errorf("total = %q, %v", out.String(), err)
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
