// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// behind is how old the latest point in time may be before a person should look, beyond twice the interval: an upload takes a while, and the operator
// writes a status in which only times have changed once a minute.
const behind = 2 * time.Minute

// defaultInterval is the default of backup.pitr.
const defaultInterval = 30 * time.Second

// archive looks at the archive of binary logs.
func archive(w World) []Finding {
	p := report.PITROf(w.Group)
	if p == nil {
		return nil
	}
	var out []Finding
	timeline := wire.Remedy{Text: "see from when to when the group can be brought back", Command: fmt.Sprintf("kubectl mfg backup timeline %s -n %s", w.Group.Name, w.Group.Namespace)}
	if p.Bad() && p.Reason != v1alpha1.ReasonPITRStarting {
		out = append(out, one(Fail, timeline, "the archive of binary logs is not as it should be: %s [%s]", p.Message, p.Reason)...)
	}
	if p.GapCount > 0 {
		remedy := wire.Remedy{Text: "a backup that was made after it leads on", Command: fmt.Sprintf("kubectl mfg backup create %s -n %s", w.Group.Name, w.Group.Namespace)}
		out = append(out, one(Warn, remedy, "the archive of binary logs lacks transactions (%d gaps): no moment within can be brought back", p.GapCount)...)
	}
	switch late := w.lateness(p); {
	case len(out) > 0: // the findings already say what is wrong
	case p.Latest == nil:
		out = append(out, one(Warn, timeline, "nothing is archived yet")...)
	case late > 0:
		out = append(out, one(Warn, timeline, "the latest moment that can be brought back is %s ago, and should be %s at most", w.ago(*p.Latest), late)...)
	}
	return append(out, w.pruning(p)...)
}

// pruning is a warning if the archive keeps what no backup needs.
func (w World) pruning(p *report.PITR) []Finding {
	if p.PruneMessage == "" {
		return nil
	}
	remedy := wire.Remedy{Text: "give the credentials of the archive's storage the right to delete; the archiver then removes everything that no kept backup needs"}
	return one(Warn, remedy, "nothing is removed from the archive of binary logs, which grows: %s", p.PruneMessage)
}

// lateness returns the greatest age that the latest point should have, if it is older; 0 otherwise.
func (w World) lateness(p *report.PITR) time.Duration {
	if p.Latest == nil {
		return 0
	}
	interval := defaultInterval
	if d := w.Group.Spec.Backup.PITR.Interval.Duration; d > 0 {
		interval = d
	}
	if most := 2*interval + behind; w.clock().Sub(*p.Latest) > most {
		return most
	}
	return 0
}
