// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"slices"
	"time"
)

// order puts the lines of many streams in the order of their times. It holds at most one line of each, so its memory does not
// grow with the logs: a stream is read on only once its line was taken.
//
// The earliest line may be taken once every other stream has shown its next one. One that has nothing to say would hold up all others, so it is
// waited for no longer than its patience; if it speaks after that, its line comes later than it should.
type order struct {
	patience time.Duration
	streams  map[int]*head
}

// head is the next line of a stream.
type head struct {
	line *Line
	// asked is since when the next line is awaited.
	asked time.Time
	// level is that of the line before, for one that has none.
	level Level
}

// open adds a stream.
func (o *order) open(id int, now time.Time) { o.streams[id] = &head{asked: now} }

// put is a line of a stream.
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

// end is the end of a stream.
func (o *order) end(id int) { delete(o.streams, id) }

// take is the line that comes next; without one, how long to wait for more, or 0 for as long as nothing comes.
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

// ids are the streams in the order in which they were opened, so that lines of one moment come in the same order each time.
func (o *order) ids() []int {
	all := make([]int, 0, len(o.streams))
	for id := range o.streams {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}
