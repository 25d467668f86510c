// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// maxServers bounds the servers (data directories) of one run.
const maxServers = 16

// history is what a server holds: of each server's own transactions the first n. Replication keeps their order, so
// nothing else can come to be. The core never sees it: it gets real GTID sets.
type history [maxServers]int32

func (h history) union(o history) history {
	for i := range h {
		h[i] = max(h[i], o[i])
	}
	return h
}

func (h history) contains(o history) bool {
	for i := range h {
		if o[i] > h[i] {
			return false
		}
	}
	return true
}

// without counts what h holds and o does not.
func (h history) without(o history) int64 {
	var n int64
	for i := range h {
		n += int64(max(0, h[i]-o[i]))
	}
	return n
}

func (h history) String() string {
	var parts []string
	for i, n := range h {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%c%d", 'A'+i, n))
		}
	}
	return strings.Join(parts, ",")
}

// sets turns histories into the real GTID sets, once for each.
type sets map[history]gtidSet

type gtidSet struct {
	set  gtid.Set
	text string
}

func uuidOf(server int) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000000", server+1) }

func (c sets) of(h history) gtidSet {
	if known, ok := c[h]; ok {
		return known
	}
	var b strings.Builder
	for i, n := range h {
		if n == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(uuidOf(i))
		b.WriteString(":1-")
		b.WriteString(strconv.Itoa(int(n)))
	}
	set, err := gtid.Parse(b.String())
	if err != nil {
		panic(err)
	}
	out := gtidSet{set: set, text: set.String()}
	c[h] = out
	return out
}
