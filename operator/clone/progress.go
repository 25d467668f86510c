// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	// progressStep is the step, in percent, in which progress is shown; it keeps writes of status rare.
	progressStep = 5
	// etaStep is the unit, in seconds, to which the remaining time is rounded up.
	etaStep = 10
)

// copyStages are the stages for which MySQL estimates the bytes.
var copyStages = []string{"FILE COPY", "PAGE COPY", "REDO COPY"}

// pace estimates from two looks at a clone how long the rest takes.
type pace struct {
	source string
	began  time.Time
	// from is how many bytes had arrived at the first look, which was at since.
	from  int64
	since time.Time
}

// progress says how far a clone is.
func (p *pace) progress(last mysql.CloneStatus, now time.Time) v1alpha1.CloneProgress {
	out := v1alpha1.CloneProgress{Source: p.source, StartedAt: &metav1.Time{Time: p.began.UTC().Truncate(time.Second)}}
	var estimate, data int64
	for _, stage := range last.Stages {
		if stage.State == cloneInProgress {
			out.Stage = stage.Stage
		}
		if slices.Contains(copyStages, stage.Stage) {
			estimate, data = estimate+stage.Estimate, data+min(stage.Data, stage.Estimate)
		}
	}
	if estimate == 0 {
		return out
	}
	out.Percent = int32(data * 100 / estimate / progressStep * progressStep)
	if p.since.IsZero() {
		p.from, p.since = data, now
		return out
	}
	// Later stages have no estimate: better no remaining time than a wrong one.
	if rate := float64(data-p.from) / now.Sub(p.since).Seconds(); rate > 0 && data < estimate {
		eta := int64(math.Ceil(float64(estimate-data)/rate/etaStep)) * etaStep
		out.ETASeconds = &eta
	}
	return out
}
