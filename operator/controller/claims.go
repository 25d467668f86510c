// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/claims"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

// claimedElsewhere is 1 for a group that this operator sees and another release operates.
var claimedElsewhere = metrics.Gauge(metrics.Group, "operator_group_claimed_elsewhere",
	"1 for a group that this operator leaves alone because another release operates it, or is to; absent otherwise.")

var (
	eventClaimRefused   = events.Warning(v1alpha1.ReasonGroupClaimedElsewhere, "Leave")
	eventGroupTakenOver = events.Warning(v1alpha1.ReasonGroupTakenOver, "TakeOver")
	eventHandOverWaits  = events.Warning(v1alpha1.ReasonHandOverWaits, "Wait")
)

const (
	// whenClaimed is after how long a group of another release is looked at again, and lookAge how old a look at a Lease may be:
	// a thousand groups of one release cost one request in that time.
	whenClaimed = 15 * time.Second
	lookAge     = 2 * time.Second
	// looksKept is after how long a look at a Lease that no group asks for is forgotten.
	looksKept = 10 * time.Minute
	// whenEnding is after how long the operator checks again whether the loop of a group that is handed over has ended.
	whenEnding = 200 * time.Millisecond
)

// leaseLooks keeps what was seen of other releases' Leases. The zero value is ready to use.
type leaseLooks struct {
	mu   sync.Mutex
	seen map[string]claims.Seen
	// looked says when each was last read.
	looked map[string]time.Time
}

// look reads a Lease, unless the last look is younger than age. A Lease that cannot be read is an error: its holder may lead.
func (c *leaseLooks) look(ctx context.Context, live client.Reader, name string, age time.Duration) (claims.Seen, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, was := c.looked[name]; was && time.Since(at) < age {
		return c.seen[name], nil
	}
	ctx, cancel := context.WithTimeout(ctx, work.LookTimeout)
	defer cancel()
	began := time.Now()
	namespace, object, ok := strings.Cut(name, "/")
	lease := &coordinationv1.Lease{}
	err := error(nil)
	if ok {
		err = live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: object}, lease)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return claims.Seen{}, fmt.Errorf("read lease %s: %w", name, err)
	}
	if c.seen == nil {
		c.seen, c.looked = map[string]claims.Seen{}, map[string]time.Time{}
	}
	// Anybody who may edit a group can name any number of Leases. To forget one is safe: it has to be seen again for as long (I1).
	for other, at := range c.looked {
		if other != name && time.Since(at) > looksKept {
			delete(c.seen, other)
			delete(c.looked, other)
		}
	}
	// The Lease had this content at some time during the request, so its age counts only from the answer on.
	c.seen[name], c.looked[name] = c.seen[name].Look(leaseOf(lease), time.Now()), began
	return c.seen[name], nil
}

// isLease is true if a text can name the Lease of a release, which is called like this one's own. What cannot is not looked for, and not kept: it
// may be as long as an annotation.
func isLease(text, own string) bool {
	namespace, name, ok := strings.Cut(text, "/")
	_, like, _ := strings.Cut(own, "/")
	return ok && len(validation.IsDNS1123Label(namespace)) == 0 && name == like
}

// leaseOf returns what matters of a Lease; the zero value for one that does not exist.
func leaseOf(lease *coordinationv1.Lease) claims.Lease {
	var out claims.Lease
	if lease.Spec.HolderIdentity != nil {
		out.Holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		out.Renewed = lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
	}
	if lease.Spec.LeaseDurationSeconds != nil {
		out.Duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	return out
}

// claimed says whether this release operates a group, and claims it if no release does. Nothing is done for a group before
// that: if it cannot be found out, this release leaves the group alone.
func (r *Reconciler) claimed(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (mine bool, again time.Duration, err error) {
	q := claims.Question{Own: r.Lease, Claim: group.Status.Claim, Wanted: group.Annotations[v1alpha1.AnnotationOperatedBy], Now: time.Now()}
	if q.Claim != nil && q.Claim.Lease != q.Own {
		if q.Holder, err = r.leases.look(ctx, r.Live, q.Claim.Lease, lookAge); err != nil {
			r.leave(group)
			r.tellClaim(group, eventClaimRefused, "it is claimed under Lease "+q.Claim.Lease+", and how that is cannot be read; look at the log")
			return false, 0, err
		}
	}
	if q.Wanted != "" && q.Wanted != q.Own && !isLease(q.Wanted, q.Own) && q.Claim != nil && q.Claim.Lease == q.Own {
		// It names no Lease of an operator, so none leads by it: the holder of any other Lease would leave the group alone for good.
		_, name, _ := strings.Cut(q.Own, "/")
		r.tellClaim(group, eventHandOverWaits, fmt.Sprintf("annotation %s is to be NAMESPACE/%s, with the namespace of the other release, not %.100q: correct or remove it",
			v1alpha1.AnnotationOperatedBy, name, q.Wanted))
		claimedElsewhere.DeleteLabelValues(group.Namespace, group.Name)
		return true, 0, nil
	}
	if q.Wanted != "" && q.Wanted != q.Own && q.Claim != nil && q.Claim.Lease == q.Own {
		if q.Heir, err = r.leases.look(ctx, r.Live, q.Wanted, lookAge); err != nil {
			return true, 0, nil //nolint:nilerr // the group stays here: it is not known whether the other release runs
		}
	}
	q.Now = time.Now()
	verdict, why := claims.Decide(q)
	switch verdict {
	case claims.Operate:
		r.tellClaim(group, eventHandOverWaits, why)
		claimedElsewhere.DeleteLabelValues(group.Namespace, group.Name)
		if why != "" {
			again = scope.WhenWaiting // two looks at the other Lease show whether its release runs
		}
		return true, again, nil
	case claims.Take:
		return r.take(ctx, group, q.Holder)
	case claims.HandOver:
		again, err = r.handOver(ctx, group, q.Wanted)
		return false, again, err
	case claims.Leave:
	}
	r.leave(group)
	r.tellClaim(group, eventClaimRefused, why)
	return false, wait.Jitter(whenClaimed, 0.25), nil
}

// leave ends all that this process does for a group of another release.
func (r *Reconciler) leave(group *v1alpha1.MysqlFailoverGroup) {
	key := scope.KeyOf(group)
	r.Loops.Forget(key)
	r.Work.Forget(key)
	claimedElsewhere.WithLabelValues(group.Namespace, group.Name).Set(1)
}

// take claims a group. If another release's claim ran out, take reads its Lease again once the new claim is written: if that release
// came back later, it reads the new claim before it does anything; if it came back earlier, it has changed the Lease by now.
func (r *Reconciler) take(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, before claims.Seen) (mine bool, again time.Duration, err error) {
	former := group.Status.Claim
	if err := r.writeClaim(ctx, group, &v1alpha1.GroupClaim{Lease: r.Lease, Holder: r.Holder, Since: metav1.Now()}); err != nil {
		if apierrors.IsConflict(err) {
			return false, scope.WhenOvertaken, nil // another release may have claimed it: look again
		}
		return false, 0, err
	}
	logger := log.FromContext(ctx).WithValues("namespace", group.Namespace, "group", group.Name, "lease", r.Lease)
	if former == nil || former.Lease == "" {
		logger.Info("claimed the group")
		return true, 0, nil
	}
	after, err := r.leases.look(ctx, r.Live, former.Lease, 0)
	if err == nil && after == before {
		claimedElsewhere.DeleteLabelValues(group.Namespace, group.Name)
		r.Recorder.Emit(group, nil, eventGroupTakenOver, "The operator with Lease %s took the group over: Lease %s, under which it was operated, has not been renewed any more",
			r.Lease, former.Lease)
		logger.Info("took the group over", "former", former.Lease)
		return true, 0, nil
	}
	logger.Info("gave the group back: its release is there again", "former", former.Lease, "error", err)
	return false, scope.WhenOvertaken, r.writeClaim(ctx, group, former)
}

// handOver claims a group for another release, once this process does nothing more for it.
func (r *Reconciler) handOver(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, to string) (time.Duration, error) {
	key := scope.KeyOf(group)
	for _, site := range group.Spec.Sites {
		if purpose, busy := r.Work.Busy(key.Namespace, key.Name, site.Name); busy {
			r.tellClaim(group, eventHandOverWaits, fmt.Sprintf("it is handed over to Lease %s when the work on site %s has ended: %s", to, site.Name, purpose))
			return scope.WhenMoving, nil
		}
	}
	r.leave(group)
	if !r.Loops.Ended(key) {
		return whenEnding, nil // it may still answer a sidecar: the next operator must not begin to count a lease before it has ended (I4)
	}
	if err := r.writeClaim(ctx, group, &v1alpha1.GroupClaim{Lease: to, Since: metav1.Now()}); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("handed the group over", "namespace", group.Namespace, "group", group.Name, "to", to)
	return whenClaimed, nil
}

// writeClaim overwrites only the version that was read, so that of two claims at once one is refused.
func (r *Reconciler) writeClaim(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, c *v1alpha1.GroupClaim) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": group.UID, "resourceVersion": group.ResourceVersion},
		"status":   map[string]any{"claim": c},
	})
	if err != nil {
		return fmt.Errorf("claim group: %w", err)
	}
	written := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: group.Name}}
	if err := r.Client.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.ManagerClaim)); err != nil {
		return fmt.Errorf("claim group: %w", err)
	}
	group.ResourceVersion, group.Status.Claim = written.ResourceVersion, c
	return nil
}

// tellClaim emits an event if its text differs from the last one.
func (r *Reconciler) tellClaim(group *v1alpha1.MysqlFailoverGroup, e events.Event, text string) {
	if r.base.Changed(scope.KeyOf(group), string(e.Reason), text) && text != "" {
		r.Recorder.Emit(group, nil, e, "The operator with Lease %s: %s", r.Lease, text)
	}
}
