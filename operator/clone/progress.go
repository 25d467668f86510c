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
	// progressStep, in percent, keeps writes of the status rare too.
	progressStep = 5
	// etaStep is what the rest of a clone is rounded up to, in seconds.
	etaStep = 10
)

// copyStages are the stages whose bytes are estimated.
var copyStages = []string{"FILE COPY", "PAGE COPY", "REDO COPY"}

// pace tells from two sights of a clone how long the rest takes.
type pace struct {
	source string
	began  time.Time
	// from is how much had arrived when it was looked at first, at since.
	from  int64
	since time.Time
}

// progress is how far a clone has come.
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
	// Later stages have no estimate: what they take is not told rather than told wrongly.
	if rate := float64(data-p.from) / now.Sub(p.since).Seconds(); rate > 0 && data < estimate {
		eta := int64(math.Ceil(float64(estimate-data)/rate/etaStep)) * etaStep
		out.ETASeconds = &eta
	}
	return out
}
