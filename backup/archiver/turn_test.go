// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// I26: once it is this site's turn no more, nothing is written and nothing removed, not even if the same site is the active one again, under a
// later epoch: between the two another site may have been open. What a server that is read-only holds is not known to be history either.
func TestNothingIsDoneOutOfTurnI26(t *testing.T) {
	mine := always{Epoch: 1, Site: "a", Active: true}
	acts := map[string]func(*work) error{
		"a file":  func(w *work) error { return w.mayWrite(t.Context()) },
		"a round": func(w *work) error { _, err := w.round(t.Context()); return err },
		"a prune": func(w *work) error { return w.janitor.prune(t.Context()) },
	}
	for name, tc := range map[string]struct {
		turn     always
		readOnly bool
		over     []string
	}{
		"its turn":                       {mine, false, nil},
		"the same site, a later epoch":   {always{Epoch: 2, Site: "a", Active: true}, false, []string{"a file", "a round", "a prune"}},
		"fenced under the same epoch":    {always{Epoch: 1, Site: "a"}, false, []string{"a file", "a round", "a prune"}},
		"read-only before it is told so": {mine, true, []string{"a round"}},
	} {
		for what, act := range acts {
			s, a := openStorage(t)
			open := sealedLog(1, "binlog.000001")
			open.Sealed = false
			store(t, a, holding(open, "", "1-3"))
			st := oneLog()
			st.ReadOnly = tc.readOnly
			p := programOf(t, a, st, nil, opened(1, "a", serverOurs, ""))
			w := workOf(t, p, 1)
			w.next = "binlog.000001"
			p.ask = tc.turn
			s.changed()
			err := act(w)
			over := slices.Contains(tc.over, what)
			if errors.Is(err, errTurnOver) != over || !over && err != nil {
				t.Errorf("I26: %s, %s: %v", name, what, err)
			}
			// The operator says what an epoch began with. Any site may note that.
			changes := slices.DeleteFunc(s.changed(), func(c string) bool { return strings.HasPrefix(c, "PUT archive/epochs/") })
			if over && len(changes) > 0 {
				t.Errorf("I26: %s, %s: changed %v", name, what, changes)
			}
		}
	}
}
