// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"strings"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// replacedMost is how many replaced segments one Prune removes: the next one goes on.
const replacedMost = 2000

// Replaced are segments that are no longer needed, because their folder has the sealed log.
type Replaced struct {
	// Files is how many there are, and Bytes the room that their data takes.
	Files int
	Bytes int64
	// keys are those of the first ones, each manifest before its data.
	keys []string
	// logs are the sealed logs that replace them.
	logs map[string]bool
}

func (r *Replaced) add(log, manifest string, data []bucket.Item) {
	if r.logs == nil {
		r.logs = map[string]bool{}
	}
	r.logs[log] = true
	fits := r.Files < replacedMost
	r.Files++
	if fits {
		r.keys = append(r.keys, manifest)
	}
	for _, i := range data {
		r.Bytes += i.Bytes
		if fits {
			r.keys = append(r.keys, i.Key)
		}
	}
}

// addLog adds a segment whose manifest was read.
func (r *Replaced) addLog(l Log) {
	r.add(l.whole(), l.key(), []bucket.Item{{Key: l.dataKey(), Bytes: l.Object.Bytes}})
}

// With adds those of another listing.
func (r Replaced) With(o Replaced) Replaced {
	out := Replaced{Files: r.Files + o.Files, Bytes: r.Bytes + o.Bytes, logs: map[string]bool{}}
	out.keys = append(append(out.keys, r.keys...), o.keys...)
	for _, logs := range []map[string]bool{r.logs, o.logs} {
		for log := range logs {
			out.logs[log] = true
		}
	}
	return out
}

// by are the logs among those that replace segments, which a listing does not have.
func (r Replaced) by(l Listing) map[string]bool {
	out := map[string]bool{}
	for _, u := range l.Unreadable {
		if log := strings.TrimSuffix(u.Key, manifestEnd); r.logs[log] {
			out[log] = true
		}
	}
	for _, m := range l.Missing {
		if m.Sealed && r.logs[m.whole()] {
			out[m.whole()] = true
		}
	}
	return out
}
