// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestAnOldHoldKeepsNoSiteShutI3: it is pushed while the opening is marked on the volume, between the two times that the boot rule is asked.
func TestAnOldHoldKeepsNoSiteShutI3(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.markHang = make(chan struct{})
		w.boot()
		w.after(100 * time.Millisecond)
		held := told(5, "a")
		held.Hold, held.IssuedAt = true, time.Now().Add(time.Hour)
		for range 20 {
			if r := w.push(held); r.Message != "" {
				t.Errorf("got %+v", r)
			}
		}
		close(w.markHang)
		w.after(100 * time.Millisecond)
		w.mustBe("writable")
	})
}

// TestAnOldPushEndsNoWindowI3: a clone that runs in it would be ended with its mysqld. What the operator says itself counts at once.
func TestAnOldPushEndsNoWindowI3(t *testing.T) {
	story(t, func(_ *testing.T, w *world) {
		w.operator = told(5, "b")
		w.operator.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: time.Now().Add(time.Minute)}}
		w.boot()
		w.after(time.Second)
		w.do(func() { w.superReadOnly, w.offline = false, true })
		for range 100 {
			w.push(told(5, "b"))
			w.after(10 * time.Millisecond)
			w.mustBe("in a window")
		}
		w.after(askSoonPause)
		w.do(func() { w.operator.Windows = nil })
		w.push(told(5, "b"))
		w.after(10 * time.Millisecond)
		w.mustBe("read-only")
	})
}

// TestAWindowThatIsPushedOpensOnTheOperatorsWordI3: at once, although the push itself is not believed.
func TestAWindowThatIsPushedOpensOnTheOperatorsWordI3(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(time.Second)
		open := told(5, "b")
		open.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: time.Now().Add(time.Minute)}}
		known := func() bool {
			_, is := w.agent.now().Newest().WindowFor("a", time.Now())
			return is
		}
		w.push(open)
		w.after(10 * time.Millisecond)
		if known() {
			t.Error("I3: a push opened a window that the operator does not know of")
		}
		w.after(askSoonPause)
		w.do(func() { w.operator = open })
		w.push(open)
		w.after(10 * time.Millisecond)
		if !known() {
			t.Error("the sidecar did not ask the operator")
		}
	})
}

// TestOldPushesCostLittle: each may contradict the one before. None is written to the volume, and the operator is asked twice a second at most.
func TestOldPushesCostLittle(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.events = nil })
		held := told(5, "a")
		held.Hold = true
		for range 500 {
			w.push(held)
			w.push(told(5, "a"))
			w.after(20 * time.Millisecond)
		}
		asked, kept := 0, 0
		for _, e := range w.happenings() {
			if e == "operator asked" {
				asked++
			} else if strings.HasPrefix(e, "kept") {
				kept++
			}
		}
		if asked < 10 || asked > 27 || kept > 0 {
			t.Errorf("in 10 s the operator was asked %d times, and %d statements were written", asked, kept)
		}
		w.mustBe("writable")
	})
}
