// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// TestTheNextRunEndsAMysqldThatWasBeingOpenedI1: the run before ended within an opening, whose statement still hangs inside
// mysqld. Read-only proves nothing until that mysqld has ended.
func TestTheNextRunEndsAMysqldThatWasBeingOpenedI1(t *testing.T) {
	for name, tc := range map[string]struct {
		mark  string
		ended bool
	}{
		"it still runs":              {"100/1", true},
		"it was started anew since":  {"99/1", false},
		"which one it was is lost":   {"", true},
		"one of several that it was": {"99/1 100/1", true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				w.operator = told(5, "b")
				w.mark, w.marked, w.unkillable = tc.mark, true, true
				w.boot()
				r := w.push(told(6, "b"))
				if r.FencedUnder(6) == tc.ended {
					t.Errorf("I1: proof %t: %+v", r.FencedUnder(6), r)
				}
				w.do(func() { w.unkillable = false })
				w.after(10 * time.Second)
				if got := w.happenings(); slices.Contains(got, "killed 100/1") != tc.ended {
					t.Errorf("I1: got %q", got)
				}
				if r := w.push(told(7, "b")); !r.FencedUnder(7) {
					t.Errorf("no proof after its end: %+v", r)
				}
			})
		})
	}
}

// TestAnOpeningIsMarkedWhileItsOutcomeIsOpenI1: from before the first statement until the outcome is known.
func TestAnOpeningIsMarkedWhileItsOutcomeIsOpenI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.openHang = true
		w.boot()
		time.Sleep(200 * time.Millisecond) // the opening is under way
		w.do(func() {
			if !w.marked || w.mark != "100/1" {
				t.Error("I1: an opening is under way, and the next run would not know")
			}
		})
		w.after(4 * time.Second) // it was cut off, and mysqld is killed
		w.do(func() {
			if w.marked {
				t.Error("the mark outlives its mysqld")
			}
			w.openHang = false
			w.startMysqld(101)
		})
		w.after(time.Second)
		w.mustBe("writable")
		w.do(func() {
			if w.marked || w.mark != "101/1" {
				t.Errorf("open, and marked %t %q", w.marked, w.mark)
			}
		})
	})
}

// TestTheMarkStaysUntilTheOutcomeIsKnownI1: the opening was cut off, and its mysqld cannot be ended yet. Should this run end now,
// the next one must know.
func TestTheMarkStaysUntilTheOutcomeIsKnownI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.openHang, w.unkillable = true, true
		w.boot()
		w.after(30 * time.Second)
		w.do(func() {
			if !slices.Contains(w.events, "killed 100/1") {
				t.Errorf("nobody tried to end it: %q", w.events)
			}
			if !w.marked || w.mark != "100/1" {
				t.Errorf("I1: the outcome is open, and marked %t %q", w.marked, w.mark)
			}
			w.unkillable = false
		})
		w.after(5 * time.Second)
		w.do(func() {
			w.openHang = false
			w.startMysqld(101)
		})
		w.after(3 * time.Second)
		w.mustBe("writable")
	})
}

// TestAMarkIsTakenAwayOnce: each time writes to the data volume. One that stays is tried again.
func TestAMarkIsTakenAwayOnce(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.channels, w.operator = 1, told(5, "a")
		w.boot()
		w.after(30 * time.Second) // it is named, and may not open
		w.do(func() {
			if w.unmarks > 0 {
				t.Errorf("nothing was marked, and the mark was taken away %d times", w.unmarks)
			}
			w.channels = 0
		})
		w.after(30 * time.Second)
		w.mustBe("writable")
		w.do(func() { w.channels = 1; w.startMysqld(101) })
		w.after(30 * time.Second)
		w.do(func() {
			if w.unmarks != 1 {
				t.Errorf("after one opening the mark was taken away %d times", w.unmarks)
			}
			w.channels, w.unmarkFail = 0, errors.New("input/output error")
		})
		w.after(10 * time.Second)
		w.mustBe("writable")
		w.do(func() { w.channels, w.unmarkFail = 1, nil; w.startMysqld(102) })
		w.after(10 * time.Second)
		w.do(func() {
			if w.marked {
				t.Error("a mark that could not be taken away is forgotten: the next run would end this mysqld")
			}
		})
	})
}

// TestAMarkThatCannotBeReadMayBeOneI1: what runs may be what an earlier run was opening, so only its end is proof.
func TestAMarkThatCannotBeReadMayBeOneI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.markLost, w.unkillable = errors.New("input/output error"), true
		w.boot()
		if r := w.push(told(6, "b")); r.FencedUnder(6) {
			t.Errorf("I1: it passes for fenced: %+v", r)
		}
		w.do(func() { w.unkillable = false })
		w.after(10 * time.Second)
		if got := w.happenings(); !slices.Contains(got, "killed 100/1") {
			t.Errorf("I1: got %q", got)
		}
	})
}

// TestWithoutANameEveryMysqldIsEndedI1: which one an earlier run was opening could not be seen, so none of them is spared.
func TestWithoutANameEveryMysqldIsEndedI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.marked, w.mark, w.lookFails = true, "100/1", 1
		w.boot() // returns after the first fence
		if got := w.happenings(); !slices.Contains(got, "killed 100/1") {
			t.Errorf("I1: got %q", got)
		}
		if r := w.push(told(6, "b")); !r.FencedUnder(6) {
			t.Errorf("no proof after its end: %+v", r)
		}
	})
}

// TestWhatCannotBeMarkedIsNotOpenedI1, and the report says why.
func TestWhatCannotBeMarkedIsNotOpenedI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.markFail = errors.New("no space left on device")
		w.boot()
		w.after(3 * time.Second)
		w.mustBe("read-only")
		if r := w.push(told(5, "a")); r.Writable || !strings.Contains(r.Message, "mark the opening") {
			t.Errorf("I1: got %+v", r)
		}
		w.do(func() { w.markFail = nil })
		w.after(3 * time.Second)
		w.mustBe("writable")
		if !w.agent.changed("opening", string(fence.OpeningNotMarked)) {
			t.Error("the same trouble is not told of the next opening")
		}
	})
}

// TestAMarkThatHangsHoldsNoFenceBackI4: the right to change MySQL is taken after the mark.
func TestAMarkThatHangsHoldsNoFenceBackI4(t *testing.T) {
	story(t, func(_ *testing.T, w *world) {
		w.operator = told(5, "a")
		w.markHang = make(chan struct{})
		w.boot()
		w.after(200 * time.Millisecond)
		w.do(func() { w.superReadOnly, w.readOnly = false, false })
		w.after(600 * time.Millisecond)
		w.mustBe("read-only")
		w.after(3 * time.Second)
		w.mustBe("read-only")
		close(w.markHang)
		w.after(3 * time.Second)
		w.mustBe("writable")
	})
}

// Answers that come while a mark hangs wait for nothing: each would look at MySQL in turn once the volume is back, before the site opens.
func TestAnswersDoNotPileUpBehindAMarkThatHangs(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.markHang = make(chan struct{})
		w.boot()
		w.after(5 * time.Second)
		before := runtime.NumGoroutine()
		w.after(time.Minute)
		if more := runtime.NumGoroutine() - before; more > 10 {
			t.Errorf("%d goroutines more after a minute", more)
		}
		close(w.markHang)
		w.after(3 * time.Second)
		w.mustBe("writable")
	})
}

// TestAnotherMysqldThanTheMarkedOneIsNotOpenedI1: the mark would prove to the next run that nothing is pending.
func TestAnotherMysqldThanTheMarkedOneIsNotOpenedI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.markHang = make(chan struct{})
		w.boot()
		w.after(200 * time.Millisecond) // 100/1 is being marked
		w.do(func() { w.startMysqld(101) })
		close(w.markHang)
		w.after(3 * time.Second)
		w.mustBe("writable")
		got := w.happenings()
		if at := slices.Index(got, "opened"); at < 1 || got[at-1] != "marked 101/1" && got[at-2] != "marked 101/1" {
			t.Errorf("I1: got %q", got)
		}
	})
}

func TestTheMarkOfAnOpeningSurvivesI1(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	expect := func(when, process string, marked bool) {
		t.Helper()
		if p, m, err := s.MarkedOpening(); p != process || m != marked || err != nil {
			t.Errorf("I1: %s: %q %t %v", when, p, m, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("new volume", "", false)
	must(s.UnmarkOpening())
	must(s.MarkOpening("10001/77 10002/78"))
	expect("marked", "10001/77 10002/78", true)
	must(s.MarkOpening("7/9"))
	expect("marked again", "7/9", true)
	must(s.UnmarkOpening())
	expect("over", "", false)
	must(s.MarkOpening(""))
	expect("nobody knows which", "", true)
	must(os.WriteFile(filepath.Join(s.Dir, openingFile), []byte(someMysqld+"\n"), 0o600))
	expect("an earlier release did not know which", "", true)
	must(os.WriteFile(filepath.Join(s.Dir, openingFile), []byte("10001/7"), 0o600))
	expect("half a name", "", true)
	must(os.Remove(filepath.Join(s.Dir, openingFile)))
	must(os.Mkdir(filepath.Join(s.Dir, openingFile), 0o700))
	if err := s.MarkOpening("7/9"); err == nil {
		t.Error("I1: marked where nothing can be")
	}
	if _, _, err := s.MarkedOpening(); err == nil {
		t.Error("I1: what cannot be read is taken for none")
	}
}

// TestWhichMysqldAMarkCoversI1: one that is not marked could be opened, and nobody would know of it after this run.
func TestWhichMysqldAMarkCoversI1(t *testing.T) {
	for name, tc := range map[string]struct {
		marked, now string
		want        bool
	}{
		"the same":                       {"7/1", "7/1", true},
		"one of two that were marked":    {"7/1 8/2", "8/2", true},
		"another one":                    {"7/1", "9/3", false},
		"another one besides":            {"7/1", "7/1 9/3", false},
		"it was not known which":         {"", "7/1", true},
		"it is not known which there is": {"7/1", "", true},
	} {
		if got := covers(tc.marked, tc.now); got != tc.want {
			t.Errorf("I1: %s: %t", name, got)
		}
	}
}
