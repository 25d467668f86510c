// SPDX-License-Identifier: Apache-2.0

package gtid

// UpTo is every GTID from the first to the last of each sequence that is in the set: the set itself, and what it leaves out in between. What
// a server writes next is not in it.
func (s Set) UpTo() Set {
	out := make([]member, len(s.members))
	for i, m := range s.members {
		last := m.intervals[len(m.intervals)-1]
		out[i] = member{key: m.key, intervals: []interval{{start: 1, end: last.end}}}
	}
	return Set{members: out}
}
