// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// mustKeepOut says whether clients are kept out of a read-only MySQL.
func (w *world) mustKeepOut(want bool, when string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.offline != want || !w.superReadOnly {
		w.t.Errorf("%s: offline is %v, read-only is %v; events %q", when, w.offline, w.superReadOnly, w.events)
	}
}

// TestTheTargetKeepsClientsOutI1: from the push that names it until it is open, or until another is named.
func TestTheTargetKeepsClientsOutI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(time.Second)
		w.mustKeepOut(false, "a replica")
		w.do(func() { w.channels = 1 })
		held := told(6, "a")
		held.Hold = true
		w.operator = held
		if r := w.push(held); r.Epoch != 6 {
			t.Errorf("got %+v", r)
		}
		w.after(10 * time.Millisecond)
		w.mustKeepOut(true, "the target, at once")
		w.after(time.Minute)
		w.mustKeepOut(true, "the target, as long as the failover takes")
		w.operator = told(7, "b")
		w.push(told(7, "b"))
		w.after(time.Second)
		w.mustKeepOut(false, "given up")

		w.operator = told(8, "a")
		w.operator.Hold = true
		w.push(w.operator)
		w.after(time.Second)
		w.do(func() { w.channels = 0 })
		w.operator = told(8, "a")
		w.push(told(8, "a"))
		w.mustBe("writable")
		w.after(time.Minute)
		w.mustBe("writable")
		if w.offline {
			t.Error("the site is open, and nobody gets in")
		}
	})
}

// TestKeepingOutIsTriedAgain: what fails once does not leave the door open, and never opens or kills anything.
func TestKeepingOutIsTriedAgain(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(6, "a")
		w.operator.Hold, w.keepOutFail = true, errors.New("no route")
		w.boot()
		w.after(5 * time.Second)
		w.mustKeepOut(false, "while it fails")
		w.do(func() { w.keepOutFail = nil })
		w.after(time.Second)
		w.mustKeepOut(true, "afterwards")
		if got := w.happenings(); slices.Contains(got, "killed 100/1") || slices.Contains(got, "opened") {
			t.Errorf("got %q", got)
		}
	})
}

// TestAPreparedTransactionKeepsReadersOutI1: soon after it is there, and until a while after it is gone.
func TestAPreparedTransactionKeepsReadersOutI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(3 * time.Second)
		w.mustKeepOut(false, "nothing prepared")
		w.do(func() { w.prepared = 1 })
		w.after(preparedInterval)
		w.mustKeepOut(true, "prepared")
		w.after(time.Minute)
		w.mustKeepOut(true, "prepared for long")
		w.do(func() { w.prepared = 0 })
		w.after(9 * time.Second)
		w.mustKeepOut(true, "ended a moment ago")
		w.after(2 * time.Second)
		w.mustKeepOut(false, "ended a while ago")
	})
}

// TestTheOpenSiteIsNotAskedForPreparedTransactions: its clients may prepare what they like.
func TestTheOpenSiteIsNotAskedForPreparedTransactions(t *testing.T) {
	story(t, func(_ *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.prepared = 2 })
		w.after(time.Minute)
		w.mustBe("writable")
	})
}

// TestALateKeepOutIsTakenBack: a statement that had no answer may take effect once the site is open. Its clients would be kept out for
// ever. What a person sets is taken back too, by opening the site once more under the boot rule.
func TestALateKeepOutIsTakenBack(t *testing.T) {
	for name, lost := range map[string]bool{"a late statement": true, "a person": false} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				w.operator = told(6, "a")
				w.operator.Hold = true
				if lost {
					w.keepOutFail = errors.New("i/o timeout")
				}
				w.boot()
				w.after(2 * time.Second)
				w.do(func() { w.keepOutFail, w.operator = nil, told(6, "a") })
				w.after(5 * time.Second)
				w.mustBe("writable")
				w.do(func() { w.offline = true })
				w.after(time.Second)
				opened := 0
				for _, event := range w.events {
					if event == "opened" {
						opened++
					}
				}
				if w.offline || (opened == 1) != lost {
					t.Errorf("offline is %v; events %q", w.offline, w.events)
				}
			})
		})
	}
}
