// SPDX-License-Identifier: Apache-2.0

// Package follow has what is outside a group follow its active site: a DNS record, and taints of nodes.
package follow

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventDNSFailed    = events.Warning(v1alpha1.ReasonDNSFailed, "Retry")
	eventTaintsFailed = events.Warning(v1alpha1.ReasonTaintsFailed, "Retry")
)

const (
	// steerTimeout bounds what one follower may take of a reconcile, so that an API that hangs (a webhook of somebody
	// else, say) holds up neither the other phases nor other groups for longer.
	steerTimeout = 5 * time.Second
	// whenSteering is how soon a group is looked at again whose active site was opened just now, within freshly, and was
	// not seen open by this loop yet. The end of a failover is an event; that it was read back comes a poll later.
	whenSteering = time.Second
	freshly      = time.Minute

	firstRetry   = 2 * time.Second
	longestRetry = 2 * time.Minute
)

// follower is something outside the group that follows the active site. It is written to only here, in the watch loop:
// the poll loop, which promotes, does not know that it exists.
type follower struct {
	condition string
	failed    events.Event
	wanted    bool
	// follow makes it point to the active site, which was seen open. An error is tried again, ever more rarely.
	follow func(context.Context, *scope.Scope) (conditions.Condition, error)
	// clear takes everything back that follow ever did.
	clear func(context.Context, *scope.Scope) error
}

// Follow has what is outside the group follow the active site.
type Follow struct {
	*scope.Base
	objects *apply.Applier
	// limits are what groups may ask for.
	limits limits.Limits
	memory *steering
}

// New makes a Follow.
func New(base *scope.Base, objects *apply.Applier, limits limits.Limits) *Follow {
	return &Follow{Base: base, objects: objects, limits: limits, memory: newSteering()}
}

// Forget drops what is kept about a group that is gone.
func (r *Follow) Forget(key types.NamespacedName) { r.memory.forget(key) }

func (r *Follow) followers(s *scope.Scope) []follower {
	spec := s.Group.Spec
	return []follower{
		{v1alpha1.ConditionDNSReady, eventDNSFailed, spec.DNS != nil, r.followDNS, r.clearDNS},
		{v1alpha1.ConditionTaintsReady, eventTaintsFailed, spec.Taints != nil && spec.Taints.Enabled, r.followTaints, r.clearTaints},
	}
}

// Steer has everything follow the active site. What fails is told in its condition and stops nothing else.
func (r *Follow) Steer(ctx context.Context, s *scope.Scope) error {
	for _, f := range r.followers(s) {
		r.steerOne(ctx, s, f)
	}
	return nil
}

func (r *Follow) steerOne(ctx context.Context, s *scope.Scope, f follower) {
	before := meta.FindStatusCondition(s.Group.Status.Conditions, f.condition)
	switch {
	case before == nil && !f.wanted:
		// The condition is written before the first effect, so without it there is nothing to take back.
		return
	case before == nil:
		s.Condition(conditions.Unknown(f.condition, v1alpha1.ReasonWaitingForSite, "not begun yet"))
		s.Again = min(s.Again, whenSteering)
		return
	case f.wanted && !s.Open():
		// The active site may still be fenced, and what points to the old one points to the wrong place no longer than
		// it must: it is switched as soon as the new one is seen open.
		s.Keep(before)
		if r.memory.at(s.Key, f.condition) != s.ActiveSite() {
			s.Again = min(s.Again, whenOpen(s))
		}
		return
	}
	if wait := r.memory.wait(s, f.condition); wait > 0 {
		s.Keep(before)
		s.Again = min(s.Again, wait)
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, steerTimeout)
	defer cancel()
	var condition conditions.Condition
	var err error
	if f.wanted {
		condition, err = f.follow(ctx, s)
	} else {
		err = f.clear(ctx, s)
	}
	if err != nil {
		reason, message := explain(err)
		s.Condition(conditions.False(f.condition, reason, message))
		r.Say(s, "", f.failed, message)
		s.Again = min(s.Again, r.memory.fail(s, f.condition, time.Since(began)))
		return
	}
	r.steered(s, f, condition)
}

// steered says how it went; a follower that was taken back has nothing to say any more.
func (r *Follow) steered(s *scope.Scope, f follower, condition conditions.Condition) {
	r.memory.succeed(s, f.condition)
	text := ""
	if f.wanted {
		s.Condition(condition)
		if condition.Status != metav1.ConditionTrue {
			text = condition.Message
		}
	}
	r.Say(s, "", f.failed, text)
}

// whenOpen is when to look again for an active site to be open.
func whenOpen(s *scope.Scope) time.Duration {
	since := s.Group.Status.ActiveSiteSince
	if since != nil && s.Now.Sub(since.Time) < freshly {
		return whenSteering
	}
	return scope.WhenWaiting
}

// hindrance is an error that a person has to settle, with its reason in the condition.
type hindrance struct {
	reason  v1alpha1.Reason
	message string
	cause   error
}

func (h hindrance) Error() string { return h.message }
func (h hindrance) Unwrap() error { return h.cause }

func explain(err error) (reason v1alpha1.Reason, message string) {
	var h hindrance
	switch {
	case errors.As(err, &h):
		return h.reason, h.message
	case errors.Is(err, apply.ErrForeign):
		return v1alpha1.ReasonForeignObject, err.Error()
	case apierrors.IsForbidden(err):
		return v1alpha1.ReasonForbidden, "the operator lacks the right; it will try again: " + err.Error()
	}
	return v1alpha1.ReasonWriteFailed, "it will be tried again: " + err.Error()
}

// steering remembers how the followers of all groups do. It is only memory: what must survive a restart is in status.
type steering struct {
	mu    sync.Mutex
	marks map[types.NamespacedName]map[string]steerMark
}

type steerMark struct {
	// site is the active site that was followed last.
	site string
	// count is how often it failed in a row, and until when it is left alone. Both hold for one generation and epoch: a
	// changed specification or another active site is tried at once.
	count             int
	until             time.Time
	generation, epoch int64
}

func newSteering() *steering {
	return &steering{marks: map[types.NamespacedName]map[string]steerMark{}}
}

func (m *steering) get(key types.NamespacedName, what string) steerMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marks[key][what]
}

func (m *steering) set(key types.NamespacedName, what string, mark steerMark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks[key] == nil {
		m.marks[key] = map[string]steerMark{}
	}
	m.marks[key][what] = mark
}

func (m *steering) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marks, key)
}

// at is the active site that was followed last; empty if that is not known.
func (m *steering) at(key types.NamespacedName, what string) string { return m.get(key, what).site }

// wait is how long something that failed is left alone.
func (m *steering) wait(s *scope.Scope, what string) time.Duration {
	mark := m.get(s.Key, what)
	if mark.count == 0 || !mark.holds(s) {
		return 0
	}
	return max(0, time.Until(mark.until))
}

// fail returns when to try again. What hung is left alone for much longer than it hung, so that it never takes up most of
// the group's time, or that of other groups.
func (m *steering) fail(s *scope.Scope, what string, took time.Duration) time.Duration {
	mark := m.get(s.Key, what)
	if !mark.holds(s) {
		mark.count = 0
	}
	delay := longestRetry
	if mark.count < 6 {
		delay = min(longestRetry, max(firstRetry<<mark.count, 4*took))
	}
	m.set(s.Key, what, steerMark{
		site: mark.site, count: mark.count + 1, until: time.Now().Add(delay), generation: s.Group.Generation, epoch: s.Group.Status.Epoch,
	})
	return delay
}

func (m *steering) succeed(s *scope.Scope, what string) {
	m.set(s.Key, what, steerMark{site: s.ActiveSite()})
}

func (mark steerMark) holds(s *scope.Scope) bool {
	return mark.generation == s.Group.Generation && mark.epoch == s.Group.Status.Epoch
}
