// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTail: the newest lines of all containers, in the order of their times, with nothing in them that steers a terminal. A log that hangs
// costs what it says, and a bounded time.
func TestTail(t *testing.T) {
	n := serve(t, twoSites())
	lines, note, err := Tail{Namespace: "shop", Group: "orders", Lines: 4}.Read(t.Context(), n.kube)
	if err != nil || note != "" {
		t.Fatal(note, err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, l.Source+" "+l.Word+" "+l.Text[:min(len(l.Text), 24)])
	}
	want := []string{"west/mysql INFO " + strings.Repeat("x", 24), `east/mysql ERROR [MY-013183] [InnoDB] bro`, "east/mysql ERROR stack", "west/mysql INFO last, without an end"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(lines[1].Text, "\x1b") {
		t.Errorf("%q steers the terminal", lines[1].Text)
	}
	for site, many := range map[string]int{"west": 2, "east": 4} {
		if lines, _, _ := (Tail{Namespace: "shop", Group: "orders", Site: site, Lines: 9}).Read(t.Context(), n.kube); len(lines) != many {
			t.Errorf("%s: %d lines", site, len(lines))
		}
	}
	if lines, _, _ := (Tail{Namespace: "shop", Group: "orders", Container: "sidecar", Lines: 9}).Read(t.Context(), n.kube); len(lines) != 1 || lines[0].Word != "WARN" {
		t.Errorf("%+v", lines)
	}
}

func TestTailOfALogThatHangs(t *testing.T) {
	hangs := twoSites()
	hangs.logs["w/mysql"] = "2026-11-25T17:00:03Z said before\n..."
	delete(hangs.logs, "e/sidecar")
	n := serve(t, hangs)
	began := time.Now()
	lines, note, err := Tail{Namespace: "shop", Group: "orders", Lines: 99}.Read(t.Context(), n.kube)
	if err != nil || len(lines) != 4 || !strings.Contains(note, "the log of west/mysql cannot be read") || !strings.Contains(note, "the log of east/sidecar cannot be read") {
		t.Errorf("%d lines, %q, %v", len(lines), note, err)
	}
	if took := time.Since(began); took > 3*tailTimeout {
		t.Errorf("took %s", took)
	}
}

// TestTailIsTheEnd: of a log with more than may be kept, the newest lines are, and no more than that.
func TestTailIsTheEnd(t *testing.T) {
	n := twoSites()
	var log strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&log, "2026-11-25T17:%02d:%02dZ %4d %s\n", i/60, i%60, i, strings.Repeat("x", 600))
	}
	n.logs["w/mysql"] = log.String()
	lines, note, err := Tail{Namespace: "shop", Group: "orders", Site: "west", Lines: 400}.Read(t.Context(), serve(t, n).kube)
	if err != nil || note != "" || len(lines) == 0 || !strings.HasPrefix(lines[len(lines)-1].Text, " 999 ") {
		t.Fatalf("%d lines, %q, %v: the newest is missing", len(lines), note, err)
	}
	kept := 0
	for _, l := range lines {
		kept += len(l.Text)
	}
	if kept > tailBytes || kept < tailBytes-1000 {
		t.Errorf("%d bytes are kept, of %d", kept, tailBytes)
	}
}
