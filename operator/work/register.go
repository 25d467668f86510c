// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// PurposeClone is what Busy returns for a site that receives a clone.
const PurposeClone = failover.WorkClone

// windowLength is how far ahead the deadline of a window is. Every statement moves it on while the work runs; if the
// operator dies, the sidecar fences at the last deadline it received.
const windowLength = 2 * time.Minute

const (
	// RetryFirst is after how long failed work is first tried again. Each failure doubles it, up to retryLast.
	RetryFirst   = 5 * time.Second
	retryRefused = 30 * time.Second
	retryLast    = 5 * time.Minute
)

// Register is the register of long work. The program makes it before the monitor, which reads it, and gives it to the
// Reconciler, which fills it.
type Register struct {
	mu   sync.Mutex
	jobs map[scope.SiteKey]*job

	wishes    wishes
	rotations map[scope.SiteKey]*rotation
}

// Job is what Begin gives to the one who does the work. Forget drops a job that may take a while to end, and by then its site may belong to
// another group of the same name, which has a job of its own. So a job that was forgotten, or has finished, changes nothing.
type Job struct {
	register *Register
	key      scope.SiteKey
	cancel   context.CancelFunc
}

// job is the work on one site. It stays in the register until its outcome is persisted.
type job struct {
	// runs is the job that runs; nil between two of them.
	runs    *Job
	purpose string
	window  bool
	// outcome is that of the last run; taken is true once it is persisted.
	outcome *Outcome
	taken   bool

	// clone is the progress of the clone, as status has shown it since shownAt.
	clone   *v1alpha1.CloneProgress
	shownAt time.Time

	failures  int
	notBefore time.Time
}

// New makes an empty register.
func New() *Register { return &Register{jobs: map[scope.SiteKey]*job{}} }

// Jobs counts the jobs in the register, of all groups: those that run, and those whose outcome is still needed.
func (w *Register) Jobs() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}

// Busy says whether long work holds a site, and for which purpose. The work holds it until its outcome is persisted.
func (w *Register) Busy(namespace, group, site string) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := scope.SiteKey{Group: types.NamespacedName{Namespace: namespace, Name: group}, Site: site}
	if w.rotates(key) {
		return PurposeRotation, true
	}
	j := w.jobs[key]
	if j == nil || j.purpose == "" {
		return "", false
	}
	return j.purpose, true
}

// Windows returns the windows that go into a group's statement.
func (w *Register) Windows(namespace, group string) []wire.Window {
	key := types.NamespacedName{Namespace: namespace, Name: group}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.rotationWindows(scope.SiteKey{Group: key}, time.Now())
	for k, j := range w.jobs {
		if k.Group == key && j.window {
			out = append(out, wire.Window{Site: k.Site, Purpose: wire.WindowClone, Deadline: time.Now().Add(windowLength)})
		}
	}
	return out
}

// Begin enters a job. It returns nil if another one runs, waits to be persisted, or failed a moment ago.
func (w *Register) Begin(key scope.SiteKey, cancel context.CancelFunc) *Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[key]
	if j == nil {
		j = &job{}
		w.jobs[key] = j
	}
	if j.runs != nil || j.outcome != nil && !j.taken || time.Now().Before(j.notBefore) || w.rotates(key) {
		return nil
	}
	j.runs = &Job{register: w, key: key, cancel: cancel}
	return j.runs
}

// Hold keeps all other work away from the site while it is cloned.
func (h *Job) Hold() { h.change(func(j *job) { j.purpose = PurposeClone }) }

// Window opens or closes the window of the work on a site.
func (h *Job) Window(open bool) { h.change(func(j *job) { j.window = open }) }

// Finish notes the outcome of a job. A job that failed, or must wait, may begin again after a while, which grows with
// each failure; the site is free meanwhile. A job that succeeded keeps the site until Release.
func (h *Job) Finish(o Outcome) {
	h.change(func(j *job) {
		j.runs, j.window, j.outcome, j.taken, j.clone = nil, false, &o, false, nil
		if o.Verdict == VerdictAdopt {
			return
		}
		j.purpose = ""
		wait := RetryFirst
		switch {
		case o.Failed:
			j.failures++
			wait = min(RetryFirst<<min(j.failures, 10), retryLast)
		case o.Verdict == VerdictRefuse:
			wait = retryRefused
		}
		j.notBefore = time.Now().Add(wait)
	})
}

// Result returns the outcome of the last job on a site. It stays until the next job ends, so that what is said of the
// site does not come and go.
func (w *Register) Result(key scope.SiteKey) (Outcome, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[key]; j != nil && j.outcome != nil {
		return *j.outcome, true
	}
	return Outcome{}, false
}

// Release notes that the outcome from Result is persisted: the site is free, or may be worked on again.
func (w *Register) Release(key scope.SiteKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[key]
	switch {
	case j == nil || j.outcome == nil:
	case j.outcome.Verdict == VerdictAdopt:
		delete(w.jobs, key)
	default:
		j.taken = true
	}
}

// Drop forgets the outcome of the work on a site, unless work runs there.
func (w *Register) Drop(key scope.SiteKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[key]; j != nil && j.runs == nil {
		delete(w.jobs, key)
	}
}

// Forget cancels and drops all work on a group. What still ends of it changes nothing.
func (w *Register) Forget(group types.NamespacedName) {
	w.forget(func(key scope.SiteKey) bool { return key.Group == group })
}

// ForgetSite cancels and drops all work on a site that was removed: a clone of it would keep the donor from other sites until it gives up.
func (w *Register) ForgetSite(site scope.SiteKey) {
	w.forget(func(key scope.SiteKey) bool { return key == site })
}

func (w *Register) forget(is func(scope.SiteKey) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, j := range w.jobs {
		if !is(key) {
			continue
		}
		if j.runs != nil {
			j.runs.cancel()
		}
		delete(w.jobs, key)
	}
	for key, o := range w.rotations {
		if !is(key) {
			continue
		}
		if o.runs != nil {
			o.runs.cancel()
		}
		delete(w.rotations, key)
	}
}

func (h *Job) change(f func(*job)) {
	h.register.mu.Lock()
	defer h.register.mu.Unlock()
	if j := h.register.jobs[h.key]; j != nil && j.runs == h {
		f(j)
	}
}
