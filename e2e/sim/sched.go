// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// event is something that happens at a moment of the model's true time.
type event struct {
	at  time.Duration
	seq uint64
	run func()
}

// schedule is the discrete-event scheduler: one heap of events, ordered by time and then by when they were planned, so
// that a seed always gives the same run.
type schedule struct {
	now  time.Duration
	seq  uint64
	heap []event
	rnd  *rand.Rand
}

func (s *schedule) at(at time.Duration, run func()) {
	s.seq++
	s.heap = append(s.heap, event{at: max(at, s.now), seq: s.seq, run: run})
	for i := len(s.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.before(i, up) {
			break
		}
		s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
		i = up
	}
}

func (s *schedule) after(d time.Duration, run func()) { s.at(s.now+d, run) }

func (s *schedule) before(i, j int) bool {
	a, b := &s.heap[i], &s.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// pop returns the next event and makes its time the present.
func (s *schedule) pop() (event, bool) {
	if len(s.heap) == 0 {
		return event{}, false
	}
	e := s.heap[0]
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap[last] = event{}
	s.heap = s.heap[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && s.before(child, least) {
				least = child
			}
		}
		if least == i {
			break
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
	s.now = e.at
	return e, true
}

// chance is true with the given probability.
func (s *schedule) chance(p float64) bool { return s.rnd.Float64() < p }

// between draws a duration.
func (s *schedule) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(s.rnd.Int64N(int64(high-low)))
}

// mostly draws a duration that is short as a rule and sometimes up to the long one.
func (s *schedule) mostly(short, long time.Duration, rarely float64) time.Duration {
	if s.chance(rarely) {
		return s.between(short, long)
	}
	return s.between(short/4, short)
}

// clock is the clock of one machine: it runs at its own speed and shows its own time of day.
type clock struct {
	rate float64
	wall time.Duration
}

func (c *clock) local(now time.Duration) time.Duration { return time.Duration(float64(now) * c.rate) }

// real is how long a duration of this clock takes in true time.
func (c *clock) real(d time.Duration) time.Duration { return time.Duration(float64(d) / c.rate) }

// process is something that can be stopped for a while, or killed between any two of its steps.
type process struct {
	w      *world
	host   *node
	dead   bool
	frozen bool
	// held is what happened to a frozen process; it happens when it goes on.
	held  []func()
	tasks []*task
}

// do runs f in the process, unless it died; a stopped process does it later.
func (p *process) do(f func()) {
	switch {
	case p.dead:
	case p.frozen:
		p.held = append(p.held, f)
	default:
		f()
	}
}

// after does f once d has passed on the machine's clock.
func (p *process) after(d time.Duration, f func()) {
	p.w.after(p.host.clock.real(d), func() { p.do(f) })
}

func (p *process) kill() {
	if p.dead {
		return
	}
	p.dead, p.held = true, nil
	tasks := p.tasks
	p.tasks = nil
	for _, t := range tasks {
		// One that runs right now ends at its next wait.
		if !t.over && !t.running {
			t.over = true
			if t.on != nil {
				t.on.stop()
			}
		}
	}
}

func (p *process) freeze() { p.frozen = true }

func (p *process) thaw() {
	if !p.frozen {
		return
	}
	p.frozen = false
	held := p.held
	p.held = nil
	for _, f := range held {
		p.w.at(p.w.now, func() { p.do(f) })
	}
}

// mono is the process's view of a clock that never jumps; wall its time of day.
func (p *process) mono() time.Duration { return p.host.clock.local(p.w.now) }
func (p *process) wall() time.Time     { return epochZero.Add(p.mono() + p.host.clock.wall) }

var epochZero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// task is one thread of control of a process: a coroutine that runs only while the scheduler runs it, so that the shells
// can be written down as they are, step by step, and a run is still the same for the same seed.
type task struct {
	p *process
	f func(*task)
	// on is what it runs on, from its first step on.
	on *coroutine
	// turn numbers the waits, so that a late wake-up for an earlier one does nothing.
	turn    uint64
	running bool
	over    bool
}

type killed struct{}

// spawn begins a task at this moment.
func (p *process) spawn(f func(*task)) {
	if p.dead {
		return
	}
	t := &task{p: p, f: f}
	if len(p.tasks) > 64 {
		p.tasks = living(p.tasks)
	}
	p.tasks = append(p.tasks, t)
	p.w.at(p.w.now, func() { p.do(t.resume) })
}

func living(tasks []*task) []*task {
	out := tasks[:0]
	for _, t := range tasks {
		if !t.over {
			out = append(out, t)
		}
	}
	clear(tasks[len(out):])
	return out
}

func (t *task) resume() {
	if t.over {
		return
	}
	if t.on == nil {
		t.on = t.p.w.coroutine()
		t.on.t = t
	}
	t.running = true
	t.on.next()
	t.running = false
}

// suspend gives control back to the scheduler until the task is woken. The task of a process that was killed ends here.
func (t *task) suspend() {
	if t.p.dead || !t.on.wait() {
		panic(killed{})
	}
}

// coroutine runs one task after another: its stack has grown by then.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	t     *task
	ended bool
}

func (w *world) coroutine() *coroutine {
	if n := len(w.idle); n > 0 {
		c := w.idle[n-1]
		w.idle = w.idle[:n-1]
		return c
	}
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for !c.ended {
			c.run()
			c.t = nil
			if !c.ended {
				w.idle = append(w.idle, c)
				c.wait()
			}
		}
	})
	return c
}

// wait is false if the coroutine has to end.
func (c *coroutine) wait() bool {
	c.ended = !c.yield(struct{}{})
	return !c.ended
}

func (c *coroutine) run() {
	t := c.t
	defer func() {
		t.over = true
		if r := recover(); r != nil {
			if _, ours := r.(killed); !ours {
				panic(fmt.Sprintf("%v\n%s", r, debug.Stack()))
			}
		}
	}()
	t.f(t)
}

// waker returns a function that ends the wait that is about to begin, once.
func (t *task) waker() func() {
	t.turn++
	turn := t.turn
	return func() {
		t.p.do(func() {
			if !t.over && t.turn == turn {
				t.turn++
				t.resume()
			}
		})
	}
}

func (t *task) sleep(d time.Duration) {
	wake := t.waker()
	t.p.w.after(t.p.host.clock.real(d), wake)
	t.suspend()
}

// promise is a result that comes later, or never.
type promise struct {
	w     *world
	done  bool
	wakes []func()
	// then happens where the promise is waited for, right before it is kept.
	then func()
}

func (f *promise) fulfil() {
	if f.done {
		return
	}
	f.done = true
	for _, wake := range f.wakes {
		f.w.at(f.w.now, wake)
	}
	f.wakes = nil
}

// await waits for a promise, at most for d on the task's clock; it returns whether the promise was kept.
func (t *task) await(f *promise, d time.Duration) bool {
	if f.done {
		return true
	}
	wake := t.waker()
	f.wakes = append(f.wakes, wake)
	if d >= 0 {
		t.p.w.after(t.p.host.clock.real(d), wake)
	}
	t.suspend()
	return f.done
}

const forever = -1

// lock is a lock whose holders may wait for something else meanwhile.
type lock struct {
	held  bool
	queue []*promise
}

// take waits for the lock, at most for d; it returns whether the lock was got.
func (l *lock) take(t *task, d time.Duration) bool {
	if !l.held {
		l.held = true
		return true
	}
	f := &promise{w: t.p.w}
	l.queue = append(l.queue, f)
	if t.await(f, d) {
		return true
	}
	for i, other := range l.queue {
		if other == f {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			break
		}
	}
	return false
}

func (l *lock) release() {
	if len(l.queue) == 0 {
		l.held = false
		return
	}
	first := l.queue[0]
	l.queue = l.queue[1:]
	first.fulfil()
}
