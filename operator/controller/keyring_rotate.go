// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

var eventKeyringRotationFailed = events.Warning(v1alpha1.ReasonKeyringRotationFailed, "Retry")

// PurposeRotation is what Busy says of a site whose master keys are rotated. It lasts for seconds.
const PurposeRotation = failover.WorkRotation

// errNoRotation means that a server cannot rotate its keys through us.
var errNoRotation = errors.New("this server has no keyring")

// rotation is the work on the master keys of one site. It stays in the register until status tells of it.
type rotation struct {
	cancel context.CancelFunc
	// pod is the one in which it runs, or ran.
	pod       string
	window    bool
	done      bool
	trouble   string
	failures  int
	notBefore time.Time
}

// beginRotation enters a rotation unless something else runs on the site, or the last try was a moment ago.
func (w *Work) beginRotation(key siteKey, cancel context.CancelFunc) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[key]; j != nil && j.cancel != nil {
		return false
	}
	if w.rotations == nil {
		w.rotations = map[siteKey]*rotation{}
	}
	o := w.rotations[key]
	if o == nil {
		o = &rotation{}
		w.rotations[key] = o
	}
	if o.cancel != nil || o.done || time.Now().Before(o.notBefore) {
		return false
	}
	o.cancel = cancel
	return true
}

// rotation is what became of the rotation in the pod that a site has. That of a pod which is gone is forgotten: its new keys went
// with it, and the next pod has yet to be rotated.
func (w *Work) rotation(key siteKey, pod string) keyring.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.rotations[key]
	if o != nil && o.cancel == nil && o.pod != "" && o.pod != pod {
		delete(w.rotations, key)
		o = nil
	}
	if o == nil {
		return keyring.Job{}
	}
	return keyring.Job{Running: o.cancel != nil, Done: o.done, Trouble: o.trouble, Failures: o.failures}
}

func (w *Work) finishRotation(key siteKey, err error) {
	w.changeRotation(key, func(o *rotation) {
		o.cancel, o.window, o.done, o.trouble = nil, false, err == nil, ""
		if err != nil {
			o.trouble = err.Error()
			o.failures++
			o.notBefore = time.Now().Add(min(retryFirst<<min(o.failures, 10), retryLast))
		}
	})
}

// endRotation forgets a rotation that status tells of, or that is no longer wanted.
func (w *Work) endRotation(key siteKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.rotations[key]; o != nil && o.cancel == nil {
		delete(w.rotations, key)
	}
}

func (w *Work) changeRotation(key siteKey, f func(*rotation)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.rotations[key]; o != nil {
		f(o)
	}
}

// rotates is true while a rotation holds a site. The register is locked.
func (w *Work) rotates(key siteKey) bool {
	o := w.rotations[key]
	return o != nil && o.cancel != nil
}

// wantsUnseal is true if the last look at a site found that it has to be cloned, and that its keyring must be unsealed first.
func (w *Work) wantsUnseal(key siteKey) bool {
	o, ok := w.result(key)
	return ok && o.unseal
}

// rotator rotates master keys beside the loops, as the provisioner clones.
type rotator struct{ *provisioner }

// begin starts the rotation on a site unless there is one. That it may have begun is durable by then.
func (p rotator) begin(group *v1alpha1.MysqlFailoverGroup, site string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base == nil || p.base.Err() != nil {
		return
	}
	t := task{group: group.DeepCopy(), key: siteKey{keyOf(group), site}}
	ctx, cancel := context.WithCancel(p.base)
	if !p.work.beginRotation(t.key, cancel) {
		cancel()
		return
	}
	p.running.Go(func() {
		defer cancel()
		err := p.rotate(ctx, t)
		p.tellRotation(ctx, t, err)
		p.work.finishRotation(t.key, err)
		p.done(t.key.group)
	})
}

func (p rotator) tellRotation(ctx context.Context, t task, err error) {
	if err == nil {
		keyringRotations.WithLabelValues(rotationCompleted).Inc()
		return
	}
	if errors.Is(err, mysql.ErrLocked) {
		return // not now: nothing went wrong, and status says what it waits for
	}
	keyringRotations.WithLabelValues(rotationFailed).Inc()
	log.FromContext(ctx).Error(err, "rotate master keys", "namespace", t.group.Namespace, "group", t.group.Name, "site", t.key.site)
	p.recorder.Emit(t.group, nil, eventKeyringRotationFailed, "Rotation of the master keys of site %s did not succeed and is tried again: %v", t.key.site, err)
}

// rotate opens a window, rotates both keys in it, and closes it again.
func (p rotator) rotate(ctx context.Context, t task) error {
	before, err := p.mayRotate(t, "")
	if err != nil {
		return err
	}
	p.work.changeRotation(t.key, func(o *rotation) { o.window, o.pod = true, before.PodUID })
	spec := t.group.Spec
	// The sidecar fences a window that it has not heard of.
	if err := pause(ctx, spec.Failover.PollInterval.Duration+spec.Sidecar.PeerCheckInterval.Duration+windowMargin); err != nil {
		return err
	}
	// I20: looked at again right before, since the role may have moved while the window was made known.
	f, err := p.mayRotate(t, before.PodUID)
	if err != nil {
		return err
	}
	server, err := p.open(ctx, t, f.AdminAddr, t.key.site)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	keys, ok := server.(Rotator)
	if !ok {
		return errNoRotation
	}
	if err := keys.BeginWindow(ctx); err != nil {
		return err
	}
	err = keys.RotateMasterKeys(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	// A window that stays open is fenced by the sidecar once its deadline is over.
	return errors.Join(err, keys.EndWindow(ctx))
}

// mayRotate looks whether the facts allow a rotation on a site, and on no other pod than the one looked at first.
func (p rotator) mayRotate(t task, pod string) (SiteFacts, error) {
	g, known := p.facts.Sites(t.key.group.Namespace, t.key.group.Name)
	f := g.Sites[t.key.site]
	switch {
	case !known || !g.Open:
		return f, errNotNow
	case g.ActiveSite == t.key.site || f.Writable:
		return f, fmt.Errorf("%w: %s is the active site", errNotNow, t.key.site)
	case !f.MysqlUp || !f.Following || f.Diverged || f.Cloning || f.AdminAddr == "":
		return f, errNotNow
	case pod != "" && f.PodUID != pod:
		return f, fmt.Errorf("%w: it has another pod", errNotNow)
	case f.Keyring == nil || f.Keyring.Sealed:
		return f, fmt.Errorf("%w: its keyring is sealed", errNotNow)
	}
	return f, nil
}

// rotationWindows are the windows of rotations. The register is locked.
func (w *Work) rotationWindows(group siteKey, now time.Time) []wire.Window {
	var out []wire.Window
	for k, o := range w.rotations {
		if k.group == group.group && o.window {
			out = append(out, wire.Window{Site: k.site, Purpose: wire.WindowRotation, Deadline: now.Add(windowLength)})
		}
	}
	return out
}
