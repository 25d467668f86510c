// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// mono is the time on the clock of the agent under test.
func (w *world) mono() time.Duration { return w.agent.Clock().Mono }

// I4: while the site is open its supervisor has a deadline that never lies beyond the lease and the ladder; it goes once the
// fence is proven. The fake server refuses to be opened without one.
func TestTheSupervisorHasADeadlineWhileTheSiteIsOpenI4(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		const most = 22 * time.Second // lease and fence timeout
		for range 10 {
			if left := w.dog.until() - w.mono(); left <= 0 || left > most {
				t.Fatalf("the deadline is %v away", left)
			}
			w.after(2 * time.Second)
		}
		// Nobody answers any more: the deadline stands, and the site fences before it.
		w.do(func() { w.operator = wire.Statement{} })
		w.after(3 * time.Second)
		stands := w.dog.until()
		w.after(5 * time.Second)
		if got := w.dog.until(); got != stands {
			t.Errorf("the deadline moved from %v to %v although nobody answered", stands, got)
		}
		w.after(15 * time.Second)
		if got := w.dog.until(); got != 0 || w.agent.now().Exposed() {
			t.Errorf("a fenced mysqld has the deadline %v", got)
		}
	})
}

// I2: answers under an epoch that names another site prolong nothing while the fence is not proven.
func TestTheDeadlineComesNearerWhenAFenceIsDueI2(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.fenceFail, w.unkillable, w.operator = errDown, true, told(6, "b") })
		w.after(3 * time.Second)
		first := w.dog.until()
		w.after(5 * time.Second)
		if got := w.dog.until(); got != first || first == 0 || first > w.mono() {
			t.Errorf("the deadline was %v and is %v at %v: want it where the first fence should have ended", first, got, w.mono())
		}
	})
}

// I4: with a supervisor that hangs nobody would end mysqld if this program hung too, so the site is not opened.
func TestASiteWhoseSupervisorHangsIsNotOpenedI4(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.do(func() { w.operator = told(5, "a") })
		w.dog.asleep = true
		w.boot()
		w.after(10 * time.Second)
		if w.agent.now().Open() {
			t.Error("opened")
		}
		if r := w.push(told(5, "a")); r.Writable || r.Message == "" {
			t.Errorf("the report does not say why: %+v", r)
		}
		w.dog.mu.Lock()
		w.dog.asleep = false
		w.dog.mu.Unlock()
		w.after(3 * time.Second)
		if !w.agent.now().Open() {
			t.Error("not opened once the supervisor watches again")
		}
		if got := w.agent.now().Seen().Watched; !got {
			t.Error(fence.NotWatched)
		}
	})
}

// The kubelet restarts the MySQL container when its supervisor hangs for long, and not for a short moment.
func TestASupervisorThatHangsIsToldToTheKubelet(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		health := func() int {
			code, _ := w.request("GET", wire.PathMysqldHealthz, nil)
			return code
		}
		asleep := func(is bool) {
			w.dog.mu.Lock()
			defer w.dog.mu.Unlock()
			w.dog.asleep = is
		}
		asleep(true)
		if got := health(); got != 200 {
			t.Errorf("after a moment: %d", got)
		}
		w.after(9 * time.Second)
		asleep(false)
		_ = health()
		asleep(true)
		if got := health(); got != 200 {
			t.Errorf("it woke up meanwhile: %d", got)
		}
		w.after(11 * time.Second)
		if got := health(); got != 503 {
			t.Errorf("after 11 s: %d", got)
		}
		w.do(func() { w.pid = 0 })
		w.after(time.Second)
		if got := health(); got != 200 {
			t.Errorf("there is no mysqld to guard: %d", got)
		}
	})
}
