// SPDX-License-Identifier: Apache-2.0

package work

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// progressPause keeps writes of the status rare: a clone can take hours.
const progressPause = 10 * time.Second

// Advance notes how far the clone into a site is, and says whether status must show it: it must be a new step, and not
// too soon after the last one.
func (h *Job) Advance(p v1alpha1.CloneProgress, now time.Time) bool {
	news := false
	h.change(func(j *job) {
		same := j.clone != nil && j.clone.Stage == p.Stage && j.clone.Percent == p.Percent
		if same || j.clone != nil && now.Sub(j.shownAt) < progressPause {
			return
		}
		j.clone, j.shownAt, news = &p, now, true
	})
	return news
}

// Progress returns what status must show of the clone into a site; nil if there is none.
func (w *Register) Progress(key scope.SiteKey) *v1alpha1.CloneProgress {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[key]; j != nil && j.clone != nil {
		return j.clone.DeepCopy()
	}
	return nil
}

// GiveUp ends a job that does not hold its site yet. Once it holds the site, its clone may have begun.
func (w *Register) GiveUp(key scope.SiteKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[key]; j != nil && j.runs != nil && j.purpose == "" {
		j.runs.cancel()
	}
}
