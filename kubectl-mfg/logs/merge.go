// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"slices"
	"time"
)

// order sorts the lines of many streams by time. It holds at most one line of each, so its memory does not grow with the
// logs: it reads the next line of a stream only once the last was taken.
//
// The earliest line may be taken once every other stream has shown its next one. A silent stream would hold up all others, so order waits for
// it no longer than its patience; if it speaks after that, its line comes later than it should.
type order struct {
	patience time.Duration
	streams  map[int]*head
}

// head is the next line of a stream.
type head struct {
	line *Line
	// asked is since when order waits for the next line.
	asked time.Time
	// level is the level of the previous line, for a line that has none.
	level Level
}

// open adds a stream.
func (o *order) open(id int, now time.Time) { o.streams[id] = &head{asked: now} }

// put takes a line of a stream.
func (o *order) put(id int, l Line) {
	h := o.streams[id]
	if l.Level == unlevelled {
		l.Level = h.level // what follows an error, such as a stack trace, belongs to it
	}
	if l.Level == unlevelled {
		l.Level = Info
	}
	h.level, h.line = l.Level, &l
}

// end removes a stream that has ended.
func (o *order) end(id int) { delete(o.streams, id) }

// take returns the next line; if there is none, it returns how long to wait for more, or 0 to wait without limit.
func (o *order) take(now time.Time) (id int, line Line, wait time.Duration, found bool) {
	best := -1
	for _, i := range o.ids() {
		h := o.streams[i]
		if h.line != nil && (best < 0 || h.line.At.Before(o.streams[best].line.At)) {
			best = i
		}
		if left := o.patience - now.Sub(h.asked); h.line == nil && left > 0 {
			wait = max(wait, left)
		}
	}
	if best < 0 {
		return 0, Line{}, 0, false
	}
	if wait > 0 {
		return 0, Line{}, wait, false
	}
	h := o.streams[best]
	line, h.line, h.asked = *h.line, nil, now
	return best, line, 0, true
}

// ids returns the streams in the order in which they were opened, so that lines of one moment always come in the same order.
func (o *order) ids() []int {
	all := make([]int, 0, len(o.streams))
	for id := range o.streams {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}
