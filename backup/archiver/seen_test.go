// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/archive"
)

// The archive reaches as far as what was committed, whatever time a session has given itself: with SET timestamp the events of its statements are of any
// time, and an archive that seems to reach into the future hides for as long that it has stopped.
func TestASealedLogReachesNoFurtherThanItsCommits(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	commit := now.Add(-time.Minute)
	for name, tc := range map[string]struct {
		commit, event, want time.Time
	}{
		"a statement of the future":       {commit, now.Add(10 * 365 * 24 * time.Hour), commit},
		"a statement a little later":      {commit, now.Add(-time.Second), commit},
		"a statement of the past":         {commit, now.Add(-time.Hour), commit},
		"no commit":                       {time.Time{}, now.Add(-time.Second), now.Add(-time.Second)},
		"no commit, and of the future":    {time.Time{}, now.Add(time.Hour), now},
		"a clock that was wrong for once": {now.Add(24 * time.Hour), now, now},
	} {
		c := archive.Content{}
		if !tc.commit.IsZero() {
			c.LastCommit = tc.commit.UnixMicro()
		}
		if got := seenAt(c, tc.event, now); !got.Equal(tc.want) {
			t.Errorf("%s: it reaches until %s, want %s", name, got, tc.want)
		}
	}
}
