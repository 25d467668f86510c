// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// Why nothing is pruned stands until a prune succeeds: what is done between two prunes takes nothing back.
func TestWhyNothingIsPrunedStands(t *testing.T) {
	j := &janitor{w: &work{p: &Program{log: slog.New(slog.DiscardHandler), board: &board{}}}}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tc := range []struct {
		what   string
		ctx    context.Context
		err    error
		pruned bool
		want   string
	}{
		{"nothing happened", t.Context(), nil, false, ""}, {"a prune failed", t.Context(), errors.New("no right"), true, "no right"}, {"a log was sealed", t.Context(), nil, false, "no right"},
		{"its turn is over", t.Context(), errTurnOver, true, "no right"}, {"it ended", ended, nil, true, "no right"}, {"a prune succeeded", t.Context(), nil, true, ""},
	} {
		j.report(tc.ctx, tc.err, tc.pruned)
		if got := j.w.p.board.get().PruneMessage; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.want)
		}
	}
}
