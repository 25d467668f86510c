// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// at is a commit of a site that was sent and acknowledged at these milliseconds.
func at(site string, start, ack int) Commit {
	return Commit{
		Key: Key{Writer: site, Seq: int64(start)}, Server: Server{Site: site},
		Start: time.Duration(start) * ms, Ack: time.Duration(ack) * ms,
	}
}

func TestOverlaps(t *testing.T) {
	for name, tt := range map[string]struct {
		reason  string
		commits []Commit
		order   []string
		want    int
	}{
		"nothing":      {reason: "no commits, no writers", want: 0},
		"one site":     {reason: "concurrent commits of one site are what a site is for", commits: []Commit{at("a", 1, 5), at("a", 2, 4)}},
		"clean change": {reason: "a's last ack is before b's first start", commits: []Commit{at("a", 1, 5), at("b", 6, 7)}},
		"unordered input": {
			reason: "journals of different writers come one after the other", commits: []Commit{at("b", 6, 7), at("a", 1, 5)},
		},
		"late ack of the old site": {
			reason: "a may have committed after b did", commits: []Commit{at("a", 1, 8), at("b", 6, 9)}, want: 1,
		},
		"old commit acknowledged late": {
			reason:  "a's commit was sent before b opened and acknowledged after: it may have happened at any time between",
			commits: []Commit{at("a", 1, 20), at("b", 6, 9)}, want: 1,
		},
		"interleaved but never at the same instant": {
			reason:  "two sites that take turns commit by commit are both writable; a is the one that is out of turn",
			commits: []Commit{at("a", 1, 2), at("b", 3, 4), at("a", 5, 6), at("b", 7, 8)}, want: 1,
		},
		"there and back": {
			reason: "two failovers bring a back", commits: []Commit{at("a", 1, 2), at("b", 3, 4), at("a", 5, 6)},
			order: []string{"a", "b", "a"},
		},
		"back without a failover": {
			reason: "nobody gave the role back to a", commits: []Commit{at("a", 1, 2), at("b", 3, 4), at("a", 5, 6)},
			order: []string{"a", "b"}, want: 1,
		},
		"site that was never active": {
			reason: "c is dr-only", commits: []Commit{at("a", 1, 2), at("c", 3, 4)}, order: []string{"a", "b"}, want: 1,
		},
		"a turn without commits": {
			reason: "b was active for so short a time that nobody wrote", commits: []Commit{at("a", 1, 2), at("c", 3, 4)},
			order: []string{"a", "b", "c"},
		},
		"first site out of turn": {reason: "b was never active", commits: []Commit{at("b", 1, 2)}, order: []string{"a"}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Overlaps(tt.commits, tt.order); len(got) != tt.want {
				t.Errorf("%s: %d overlaps, want %d: %v", tt.reason, len(got), tt.want, got)
			}
		})
	}
}

func TestFenceMargin(t *testing.T) {
	commits := []Commit{at("b", 30, 32), at("a", 1, 5), at("a", 2, 12), at("b", 31, 40), at("a", 50, 51)}
	want := []Change{{From: "a", To: "b", Margin: 20 * ms, At: 32 * ms}, {From: "b", To: "a", Margin: 11 * ms, At: 51 * ms}}
	if diff := cmp.Diff(want, FenceMargins(commits)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got, ok := FenceMargin(commits); !ok || got != 11*ms {
		t.Errorf("margin = %v, %v", got, ok)
	}
	if got, ok := FenceMargin(commits[1:3]); ok {
		t.Errorf("margin of one site = %v, want none", got)
	}
}

func TestLongestPause(t *testing.T) {
	commits := []Commit{at("a", 1, 5), at("a", 904, 905), at("a", 906, 910), at("b", 1200, 1210), at("b", 1211, 1300)}
	got, ok := LongestPause(commits, 908*ms)
	want := Pause{LastAck: 910 * ms, NextAck: 1210 * ms, From: "a", To: "b"}
	if !ok || got != want {
		t.Errorf("pause = %+v, %v; the longer one before the fault does not count", got, ok)
	}
	if _, ok := LongestPause(commits, 2*time.Second); ok {
		t.Error("a pause that has not ended has no length")
	}
	if got, ok := LongestPause(commits[:3], 910*ms); ok {
		t.Errorf("pause = %+v; it ended as the fault was made, not after it", got)
	}
	if got, ok := LongestPause(commits[4:], 0); ok {
		t.Errorf("pause = %+v; before the first row there is nobody who waits", got)
	}
}

func TestMissing(t *testing.T) {
	commits := []Commit{at("a", 3, 4), at("a", 1, 2), at("a", 5, 6)}
	got := Missing(commits, map[Key]bool{{Writer: "a", Seq: 3}: true})
	if diff := cmp.Diff([]Commit{at("a", 1, 2), at("a", 5, 6)}, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// written is a journal with one of everything.
func written(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, "w1", 7*ms, time.Unix(100, 0).UTC())
	w.Conn(0, 8*ms, Server{UUID: "u", Host: "h", Site: "east"})
	w.Ack(0, 1, 9*ms, 10*ms)
	w.Refused(0, 11*ms, "1290")
	w.Refused(0, 12*ms, "1290")
	w.Unknown(0, 2, 13*ms, 14*ms, "timeout")
	w.Refused(0, 15*ms, "1290")
	if err := w.End(16 * ms); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadWhatWasWritten(t *testing.T) {
	got, err := Read(bytes.NewReader(written(t)))
	if err != nil {
		t.Fatal(err)
	}
	east := Server{UUID: "u", Host: "h", Site: "east"}
	want := Journal{
		Writer:  "w1",
		Commits: []Commit{{Key: Key{"w1", 0, 1}, Server: east, Start: 9 * ms, Ack: 10 * ms}},
		Unknown: []Attempt{{Key: Key{"w1", 0, 2}, Server: east, Start: 13 * ms, GaveUp: 14 * ms, Reason: "timeout"}},
		States: []State{
			{Server: east, At: 11 * ms, Reason: "1290"}, {Server: east, At: 15 * ms, Reason: "1290"},
		},
		Refused: map[string]int64{"1290": 3}, Complete: true,
		Offset: time.Unix(100, 0).UTC().Add(-7 * ms),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

// Who reads along must be able to tell a writer that is refused from one that hangs.
func TestRefusalIsToldAgain(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, "w1", 0, time.Unix(100, 0))
	for _, at := range []time.Duration{1, 500, 1000, 1001, 1002, 2000, 2001} {
		w.Refused(0, at*ms, "1290")
	}
	w.Refused(1, 2001*ms, "1290")
	w.Refused(0, 2002*ms, "3032")
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := []State{
		{At: ms, Reason: "1290"}, {At: 1001 * ms, Reason: "1290"}, {At: 2001 * ms, Reason: "1290"},
		{Worker: 1, At: 2001 * ms, Reason: "1290"}, {At: 2002 * ms, Reason: "3032"},
	}
	if diff := cmp.Diff(want, got.States); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestReadDamaged(t *testing.T) {
	whole := string(written(t))
	lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
	t.Run("torn last line", func(t *testing.T) {
		got, err := Read(strings.NewReader(whole[:len(whole)-20]))
		if err != nil || got.Complete || len(got.Commits) != 1 {
			t.Errorf("journal = %+v, %v", got, err)
		}
	})
	t.Run("line lost on the way", func(t *testing.T) {
		_, err := Read(strings.NewReader(strings.Join(append(lines[:2:2], lines[3:]...), "")))
		if !errors.Is(err, ErrTotals) {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("beginning lost", func(t *testing.T) {
		if _, err := Read(strings.NewReader(strings.Join(lines[1:], ""))); !errors.Is(err, ErrNoStart) {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("rubbish in the middle", func(t *testing.T) {
		if _, err := Read(strings.NewReader(lines[0] + "{\n" + lines[1])); err == nil {
			t.Error("no error")
		}
	})
}

// by is a commit of one connection of a writer.
func by(worker int, site string, ack int) Commit {
	c := at(site, ack-1, ack)
	c.Key = Key{Writer: "svc", Worker: worker, Seq: int64(ack)}
	return c
}

func TestLongestClientPause(t *testing.T) {
	// Together the two are never without an acknowledgement for more than 300 ms; the second one waits for 700.
	two := []Commit{
		by(0, "a", 10), by(0, "a", 90), by(0, "b", 390), by(0, "b", 400), by(0, "b", 900),
		by(1, "a", 20), by(1, "a", 80), by(1, "b", 780), by(1, "b", 790),
	}
	for name, tt := range map[string]struct {
		reason       string
		commits      []Commit
		after, until int
		want         int
		whole        bool
	}{
		"the unluckiest":     {"the second connection's", two, 100, 800, 700, true},
		"what comes later":   {"is another run's", two, 100, 850, 700, true},
		"later than until":   {"the first connection waits for 500 ms at the end", two[:5], 100, 1000, 500, true},
		"never came back":    {"it counts up to the end, and is told", two[5:8], 785, 1000, 220, false},
		"nobody was there":   {"nothing is measured", nil, 0, 100, 0, false},
		"began before":       {"a pause that had begun before the fault counts whole", two[:5], 300, 395, 300, true},
		"only after the end": {"as if nobody had been there", two, 0, 5, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, whole := LongestClientPause(tt.commits, time.Duration(tt.after)*ms, time.Duration(tt.until)*ms)
			if whole != tt.whole || got.Length() != time.Duration(tt.want)*ms {
				t.Errorf("%s: %s, %t, want %d ms, %t", tt.reason, got.Length(), whole, tt.want, tt.whole)
			}
		})
	}
}
