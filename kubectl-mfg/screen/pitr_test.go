// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

var pitrNoon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// TestRecoverableLine: what status says of an archive.
func TestRecoverableLine(t *testing.T) {
	o := Options{Width: 200, Now: pitrNoon}
	latest, earliest, no := pitrNoon.Add(-12*time.Second), pitrNoon.Add(-48*time.Hour), false
	for name, tc := range map[string]struct {
		p    *report.PITR
		want string
	}{
		"None":     {nil, ""},
		"Nothing":  {&report.PITR{}, "no point in time yet"},
		"NoBackup": {&report.PITR{Latest: &latest}, "there is no backup to begin with"},
		"Well":     {&report.PITR{Latest: &latest, Earliest: &earliest}, "any moment until 12s ago, from 2026-11-23 12:00:00Z\n"},
		"Gap":      {&report.PITR{Latest: &latest, Earliest: &earliest, GapCount: 2, Gaps: []report.PITRGap{{Transactions: 7, After: &earliest}}}, "but for 2 gaps, the last of 7 transactions after 2026-11-23T12:00:00Z"},
		"Holding":  {&report.PITR{Latest: &latest, Earliest: &earliest, Holding: true}, "binary logs are kept on the sites"},
		"KeepsAll": {&report.PITR{Latest: &latest, Earliest: &earliest, PruneMessage: "NoDeleteRight"}, "nothing is removed from the archive, which grows: NoDeleteRight"},
		"Bad":      {&report.PITR{Latest: &latest, Earliest: &earliest, Ready: &no, Reason: "PITRLags", Message: "the bucket does not answer"}, "the bucket does not answer [PITRLags]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := o.recoverable(tc.p); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("lacks %q:\n%s", tc.want, got)
			}
		})
	}
}

// TestPictureOfLittle: an archive of nothing, of one moment, and on a narrow terminal, is drawn without a panic and within the width.
func TestPictureOfLittle(t *testing.T) {
	one := wire.ArchiveTimeline{Earliest: pitrNoon, Latest: pitrNoon, Epochs: []wire.ArchiveEpoch{{Epoch: 1, Site: "paris", Files: 1, First: pitrNoon, Last: pitrNoon, SeenAt: pitrNoon}}}
	two := one
	two.Latest = pitrNoon.Add(time.Microsecond)
	two.Gaps = []wire.ArchiveGap{{Site: "paris"}, {Site: "rome", Before: pitrNoon}}
	two.Epochs = append(two.Epochs, wire.ArchiveEpoch{Epoch: 2, Site: "a-site-with-a-long-name", Kind: "Planned", PromotedAt: pitrNoon, Lost: 1, Last: pitrNoon, Files: 1})
	for name, a := range map[string]wire.ArchiveTimeline{"Nothing": {}, "One": one, "Two": two} {
		for _, width := range []int{0, 1, 40, 300} {
			got := Timeline(&report.Timeline{Archive: a}, Options{Width: width, Now: pitrNoon})
			for _, line := range strings.Split(got, "\n") {
				if strings.Contains(line, "===") && width >= 60 && len(line) > width {
					t.Errorf("%s at %d: %s", name, width, line)
				}
			}
		}
	}
}
