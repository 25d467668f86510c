// SPDX-License-Identifier: Apache-2.0

package access

import (
	"maps"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// part is what a Secret holds of one thing that the servers know too: the passwords of an account, or an authority.
type part struct {
	// needed are keys of which a Secret must have one; with them come others.
	needed, others []string
}

// parts are all that the operator cannot do without. No server forgets them because somebody emptied the Secret.
var parts = func() []part {
	out := []part{{needed: []string{keyCA}}}
	for _, key := range []string{keyOperator, keyReplication, keyClone, v1alpha1.CachePassword} {
		out = append(out, part{[]string{key + v1alpha1.PasswordKnown, key}, []string{key + v1alpha1.PasswordNext, key + v1alpha1.PasswordPrevious, v1alpha1.PasswordSerial}})
	}
	return out
}()

func (p part) in(data map[string][]byte) bool {
	return slices.ContainsFunc(p.needed, func(key string) bool { return len(data[key]) > 0 })
}

// kept returns what is used of a Secret after it was read again: its content, and of each part that it had before and lacks now the keys
// from before. lost names those parts; it is empty for a whole Secret.
func (k known) kept(now map[string][]byte) (data map[string][]byte, lost string) {
	data = now
	var names []string
	for _, p := range parts {
		if p.in(now) || !p.in(k.data) {
			continue
		}
		if len(names) == 0 {
			data = maps.Clone(now)
			if data == nil {
				data = map[string][]byte{}
			}
		}
		names = append(names, p.needed[len(p.needed)-1])
		for _, key := range slices.Concat(p.needed, p.others) {
			if len(now[key]) == 0 && len(k.data[key]) > 0 {
				data[key] = k.data[key]
			}
		}
	}
	return data, strings.Join(names, ", ")
}
