// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	// copyPatience is how long a clone may copy without a byte more. MySQL itself gives up a donor that it lost after 5 minutes, and one that
	// waits for changes of tables after as long.
	copyPatience = 30 * time.Minute
	// quietPatience is the same for what MySQL counts no bytes of: to drop what was there, and to flush what came, on slow storage.
	quietPatience = 2 * time.Hour
)

// growth knows how far a clone had come when it last came any further.
type growth struct {
	began  string
	stages int
	data   int64
	since  time.Time
	// stalled says that it has not come any further for too long. That stays so until it does.
	stalled string
}

// look says for how long a clone has not come any further, if that is too long; otherwise it is empty. now is by the monotonic clock of
// this process.
func (g *growth) look(last mysql.CloneStatus, now time.Time) string {
	seen, at := growth{began: last.Began, since: now}, ""
	for _, stage := range last.Stages {
		seen.data += stage.Data
		switch stage.State {
		case cloneCompleted:
			seen.stages++
		case cloneInProgress:
			at = stage.Stage
		}
	}
	if g.since.IsZero() || seen.began != g.began || seen.stages > g.stages || seen.data > g.data {
		*g = seen
		return ""
	}
	patience := quietPatience
	if slices.Contains(copyStages, at) {
		patience = copyPatience
	}
	if g.stalled == "" && now.Sub(g.since) >= patience {
		g.stalled = fmt.Sprintf("no progress for %s (stage: %s)", patience, cmp.Or(at, "none yet"))
	}
	return g.stalled
}
