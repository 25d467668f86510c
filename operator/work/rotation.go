// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// PurposeRotation is what Busy returns for a site whose master keys are being rotated. It lasts for seconds.
const PurposeRotation = failover.WorkRotation

// Turn is what BeginRotation gives to the one who rotates. As with a Job, one that was forgotten or has finished changes nothing.
type Turn struct {
	register *Register
	key      scope.SiteKey
	cancel   context.CancelFunc
}

// rotation is the work on the master keys of one site. It stays in the register until status records it.
type rotation struct {
	// runs is the turn that runs; nil between two of them.
	runs *Turn
	// pod is the pod in which the rotation runs or ran.
	pod    string
	window bool
	done   bool
	// half is true if InnoDB's key was rotated in that pod, and the binary logs' key was not.
	half      bool
	trouble   string
	failures  int
	notBefore time.Time
}

// BeginRotation enters a rotation. It returns nil if something else runs on the site, or the last try was a moment ago.
func (w *Register) BeginRotation(key scope.SiteKey, cancel context.CancelFunc) *Turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[key]; j != nil && j.runs != nil {
		return nil
	}
	if w.rotations == nil {
		w.rotations = map[scope.SiteKey]*rotation{}
	}
	o := w.rotations[key]
	if o == nil {
		o = &rotation{}
		w.rotations[key] = o
	}
	if o.runs != nil || o.done || time.Now().Before(o.notBefore) {
		return nil
	}
	o.runs = &Turn{register: w, key: key, cancel: cancel}
	return o.runs
}

// Rotation returns the state of the rotation in a site's present pod. It forgets a rotation in a pod that is gone: the new keys
// went with that pod, and the next pod must be rotated again.
func (w *Register) Rotation(key scope.SiteKey, pod string) keyring.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.rotations[key]
	if o != nil && o.runs == nil && o.pod != "" && o.pod != pod {
		delete(w.rotations, key)
		o = nil
	}
	if o == nil {
		return keyring.Job{}
	}
	return keyring.Job{Running: o.runs != nil, Done: o.done, Trouble: o.trouble, Failures: o.failures}
}

// Finish notes the outcome of a rotation. A failed one may begin again after a while, which grows with each failure.
func (t *Turn) Finish(err error) {
	t.change(func(o *rotation) {
		o.runs, o.window, o.done, o.trouble = nil, false, err == nil, ""
		o.half = o.half || errors.Is(err, mysql.ErrHalfRotated)
		if err != nil {
			o.trouble = err.Error()
			o.failures++
			o.notBefore = time.Now().Add(min(RetryFirst<<min(o.failures, 10), retryLast))
		}
	})
}

// EndRotation forgets a rotation that status records, or that is no longer wanted.
func (w *Register) EndRotation(key scope.SiteKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.rotations[key]; o != nil && o.runs == nil {
		delete(w.rotations, key)
	}
}

func (t *Turn) change(f func(*rotation)) {
	t.register.mu.Lock()
	defer t.register.mu.Unlock()
	if o := t.register.rotations[t.key]; o != nil && o.runs == t {
		f(o)
	}
}

// rotates is true while a rotation holds a site. The register is locked.
func (w *Register) rotates(key scope.SiteKey) bool {
	o := w.rotations[key]
	return o != nil && o.runs != nil
}

// WantsUnseal is true if the last look at a site found that it must be cloned, and its keyring unsealed before that.
func (w *Register) WantsUnseal(key scope.SiteKey) bool {
	o, ok := w.Result(key)
	return ok && o.Unseal
}

// rotationWindows returns the windows of rotations. The register is locked.
func (w *Register) rotationWindows(group scope.SiteKey, now time.Time) []wire.Window {
	var out []wire.Window
	for k, o := range w.rotations {
		if k.Group == group.Group && o.window {
			out = append(out, wire.Window{Site: k.Site, Purpose: wire.WindowRotation, Deadline: now.Add(windowLength)})
		}
	}
	return out
}

// Open announces that the window of a rotation will open in a pod.
func (t *Turn) Open(pod string) {
	t.change(func(o *rotation) { o.window, o.half, o.pod = true, o.half && o.pod == pod, pod })
}

// HalfDone is true if an earlier try in the rotation's pod gave InnoDB a new key and the binary logs none: each rotation adds a
// key, so only the rest should be rotated. An operator that does not know this rotates both.
func (t *Turn) HalfDone() (half bool) {
	t.change(func(o *rotation) { half = o.half })
	return half
}
