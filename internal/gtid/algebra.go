// SPDX-License-Identifier: Apache-2.0

package gtid

import "slices"

// Union is every GTID that is in either set.
func (s Set) Union(o Set) Set {
	return combine(s, o, unionIntervals)
}

// Subtract is every GTID of s that is not in o.
func (s Set) Subtract(o Set) Set {
	return combine(s, o, subtractIntervals)
}

// Intersect is every GTID that is in both sets.
func (s Set) Intersect(o Set) Set {
	// s without the GTIDs that o lacks is what both have.
	return s.Subtract(s.Subtract(o))
}

// Contains reports whether every GTID of o is in s. Every set contains the empty set.
func (s Set) Contains(o Set) bool {
	return o.Subtract(s).IsEmpty()
}

// combine walks both sets in order and joins the intervals of each key. If one side lacks a key, join gets no intervals
// of that side.
func combine(a, b Set, join func(x, y []interval) []interval) Set {
	var out []member
	add := func(k key, ivs []interval) {
		if len(ivs) > 0 {
			out = append(out, member{key: k, intervals: ivs})
		}
	}
	x, y := a.members, b.members
	for len(x) > 0 && len(y) > 0 {
		switch c := x[0].key.compare(y[0].key); {
		case c < 0:
			add(x[0].key, join(x[0].intervals, nil))
			x = x[1:]
		case c > 0:
			add(y[0].key, join(nil, y[0].intervals))
			y = y[1:]
		default:
			add(x[0].key, join(x[0].intervals, y[0].intervals))
			x, y = x[1:], y[1:]
		}
	}
	for _, m := range x {
		add(m.key, join(m.intervals, nil))
	}
	for _, m := range y {
		add(m.key, join(nil, m.intervals))
	}
	return Set{members: out}
}

func unionIntervals(x, y []interval) []interval {
	// A fresh slice, because normalize works in place and sets share their intervals.
	return normalize(slices.Concat(x, y))
}

func subtractIntervals(x, y []interval) []interval {
	var out []interval
	for _, iv := range x {
		for len(y) > 0 && y[0].end <= iv.start {
			y = y[1:]
		}
		// The last hole that touches iv may reach into the next interval too, so that interval looks at it again.
		for _, hole := range y {
			if hole.start >= iv.end {
				break
			}
			if iv.start < hole.start {
				out = append(out, interval{iv.start, hole.start})
			}
			iv.start = min(hole.end, iv.end)
		}
		if iv.start < iv.end {
			out = append(out, iv)
		}
	}
	return out
}

// normalize sorts intervals and joins those that overlap or touch. It reuses its argument.
func normalize(ivs []interval) []interval {
	slices.SortFunc(ivs, func(a, b interval) int {
		if a.start < b.start {
			return -1
		}
		if a.start > b.start {
			return 1
		}
		return 0
	})
	out := ivs[:0]
	for _, iv := range ivs {
		if n := len(out); n > 0 && iv.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, iv.end)
			continue
		}
		out = append(out, iv)
	}
	return out
}
