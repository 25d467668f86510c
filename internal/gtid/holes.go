// SPDX-License-Identifier: Apache-2.0

package gtid

// UpTo is every GTID from 1 to the last one of each sequence in the set: the set itself, and the GTIDs that it leaves out before its last.
// The GTID that a server writes next is not in it.
func (s Set) UpTo() Set {
	out := make([]member, len(s.members))
	for i, m := range s.members {
		last := m.intervals[len(m.intervals)-1]
		out[i] = member{key: m.key, intervals: []interval{{start: 1, end: last.end}}}
	}
	return Set{members: out}
}
