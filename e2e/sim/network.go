// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// node is a machine. Sites, operators and the API server are on machines of their own.
type node struct {
	name  string
	index int
	clock clock
	up    bool
	// frozen: the whole machine stands still, as under a hypervisor that was suspended.
	frozen  bool
	thawed  time.Duration
	kubelet bool
	tainted bool
	// readyUntil is how long the API server takes the kubelet's last word for good.
	readyUntil time.Duration
	// names is where the names of sites lead to from here: as the API server said when it was last in reach.
	names map[*site]*pod
}

// network is who reaches whom, in each direction, and how well.
type network struct {
	cut  [][]bool
	loss float64
	slow time.Duration
}

func (w *world) reaches(from, to *node) bool {
	return from == to || from.up && to.up && !from.frozen && !to.frozen && !w.net.cut[from.index][to.index]
}

// send delivers a message unless it is lost on the way. A direction that is cut swallows it.
func (w *world) send(from, to *node, deliver func()) {
	w.messages++
	if from == to {
		w.after(w.between(50*time.Microsecond, 500*time.Microsecond), deliver)
		return
	}
	if !from.up || w.net.cut[from.index][to.index] || w.chance(w.net.loss) {
		return
	}
	took := w.between(200*time.Microsecond, 3*time.Millisecond)
	if w.net.slow > 0 && w.chance(0.5) {
		took += w.between(0, w.net.slow)
	}
	w.after(took, func() {
		if to.up && !w.net.cut[from.index][to.index] {
			deliver()
		}
	})
}

// ask sends a question and waits for the answer, at most for d. serve runs where the question arrives; the answer may be
// lost, or come too late, although it was served.
func (t *task) ask(to *node, d time.Duration, serve func(reply func())) bool {
	done := &promise{w: t.p.w}
	t.p.w.request(t.p.host, to, done, serve)
	return t.await(done, d)
}

func (w *world) request(from, to *node, done *promise, serve func(reply func())) {
	w.send(from, to, func() {
		serve(func() { w.send(to, from, done.fulfil) })
	})
}
