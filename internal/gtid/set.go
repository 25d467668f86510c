// SPDX-License-Identifier: Apache-2.0

// Package gtid is the algebra of MySQL GTID sets, tagged ones too: which transactions a site has, which it lacks,
// and whether one history contains another. It computes on values only and never talks to a server, so that every
// decision that depends on it can be replayed from text.
package gtid

import (
	"cmp"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// Set is a set of GTIDs. The zero value is the empty set. A Set is immutable: no method changes its receiver or its
// arguments, so sets may be copied and shared between goroutines freely. Compare with Equal, not with ==.
type Set struct {
	// Sorted by key, keys unique, and every member has at least one interval.
	members []member
}

// key names one independent sequence of transaction numbers: a server's UUID and an optional tag.
type key struct {
	uuid [16]byte
	tag  string
}

type member struct {
	key key
	// Sorted, disjoint and not adjacent: intervals[i].end < intervals[i+1].start.
	intervals []interval
}

// interval is half open, start <= n < end, with 1 <= start < end <= maxNumber+1.
type interval struct {
	start, end int64
}

// maxNumber is the greatest transaction number that MySQL hands out. It leaves room for the exclusive end.
const maxNumber = math.MaxInt64 - 1

// compare orders by UUID and then by tag, the untagged sequence first, as MySQL prints them.
func (k key) compare(o key) int {
	if c := cmp.Compare(string(k.uuid[:]), string(o.uuid[:])); c != 0 {
		return c
	}
	return cmp.Compare(k.tag, o.tag)
}

// IsEmpty reports whether the set has no GTID.
func (s Set) IsEmpty() bool { return len(s.members) == 0 }

// Transactions counts n transactions in words: "1 transaction", "2 transactions".
func Transactions(n int64) string {
	if n == 1 {
		return "1 transaction"
	}
	return strconv.FormatInt(n, 10) + " transactions"
}

// Count is the number of GTIDs in the set, or math.MaxInt64 if there are more than that.
func (s Set) Count() int64 {
	var n int64
	for _, m := range s.members {
		for _, iv := range m.intervals {
			d := iv.end - iv.start
			if n > math.MaxInt64-d {
				return math.MaxInt64
			}
			n += d
		}
	}
	return n
}

// OfServer is the part of the set that one server has numbered itself, under any tag. It is empty for an invalid UUID.
func (s Set) OfServer(uuid string) Set {
	var id [16]byte
	if parseUUID(uuid, &id) != nil {
		return Set{}
	}
	var own []member
	for _, m := range s.members {
		if m.key.uuid == id {
			own = append(own, m)
		}
	}
	return Set{members: own}
}

// Equal reports whether both sets hold the same GTIDs.
func (s Set) Equal(o Set) bool {
	if len(s.members) != len(o.members) {
		return false
	}
	for i, m := range s.members {
		n := o.members[i]
		if m.key != n.key || len(m.intervals) != len(n.intervals) {
			return false
		}
		for j := range m.intervals {
			if m.intervals[j] != n.intervals[j] {
				return false
			}
		}
	}
	return true
}

// String is the canonical form that MySQL prints, on one line: lower case, sorted, intervals merged, the tags of one
// UUID joined behind it ("uuid:1-5:7,uuid:1-3:tag:1-2"). Parse reads it back, and so does MySQL.
func (s Set) String() string {
	var b strings.Builder
	for i, m := range s.members {
		switch {
		case i == 0:
			writeUUID(&b, m.key.uuid)
		case s.members[i-1].key.uuid != m.key.uuid:
			b.WriteByte(',')
			writeUUID(&b, m.key.uuid)
		}
		if m.key.tag != "" {
			b.WriteByte(':')
			b.WriteString(m.key.tag)
		}
		for _, iv := range m.intervals {
			b.WriteByte(':')
			b.WriteString(strconv.FormatInt(iv.start, 10))
			if iv.end-iv.start > 1 {
				b.WriteByte('-')
				b.WriteString(strconv.FormatInt(iv.end-1, 10))
			}
		}
	}
	return b.String()
}

func writeUUID(b *strings.Builder, u [16]byte) {
	h := hex.EncodeToString(u[:])
	for i, part := range []string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]} {
		if i > 0 {
			b.WriteByte('-')
		}
		b.WriteString(part)
	}
}
