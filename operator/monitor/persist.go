// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/groupstatus"
)

// errOvertaken says that another writer changed the durable part: the decision rests on an old view and is dropped.
var errOvertaken = errors.New("status was changed by somebody else")

// apiTimeout bounds one call to the API server on the poll loop.
const apiTimeout = 3 * time.Second

// load reads what is durable, from the API server and not the cache, when this loop starts. From then on the loop is
// its only writer and remembers what it wrote; persist notices if it was not.
func (l *loop) load(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	if !l.authority.HasSigner() {
		key, err := l.m.Keys.Read(ctx, group)
		if err != nil {
			return err
		}
		l.signer.use(key)
	}
	if l.loaded {
		return nil
	}
	live := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Live.Get(ctx, l.key, live); err != nil {
		return fmt.Errorf("read group: %w", err)
	}
	durable, err := groupstatus.Durable(live.Status)
	if err != nil {
		return err
	}
	for _, site := range live.Spec.Sites {
		if v1alpha1.KeptFencedSince(group, live, site.Name) {
			return fmt.Errorf("%w: the cache does not show yet that %s is kept fenced", errOvertaken, site.Name) // I29
		}
	}
	if l.durable.Epoch > 0 && !sameStep(durable, l.durable) && !sameStep(durable, l.tried) {
		// Another operator led in between, or leads: what it answered is not known here, as after a restart (I4, I9).
		l.started = time.Now()
	}
	l.durable, l.loaded = durable, true
	l.told.Resume(durable.Planned) // the operator said it before the restart
	for _, site := range live.Status.Sites {
		// A site found diverged stays so until it can be compared again, also across a restart of the operator.
		set, _ := gtid.Parse(site.Errant)
		l.memory = l.memory.With(site.Name, func(is *failover.SiteMemory) {
			if is.Diverged.IsEmpty() {
				is.Diverged = set
			}
		})
	}
	for name, server := range durable.Filtered { // until it is copied, also if it left the specification (I7)
		l.memory = l.memory.With(name, func(is *failover.SiteMemory) { is.Filtered = cmp.Or(is.Filtered, server) })
	}
	return nil
}

// sameStep is true if two durable parts name the same active site, epoch and step.
func sameStep(a, b failover.Durable) bool {
	step := func(d failover.Durable) v1alpha1.TransitionStep {
		if d.Transition == nil {
			return ""
		}
		return d.Transition.Step
	}
	return a.Epoch == b.Epoch && a.ActiveSite == b.ActiveSite && step(a) == step(b)
}

// persist writes the durable part of a decision with optimistic locking, read through the API reader.
func (l *loop) persist(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, d failover.Decision) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	var err error
	began := time.Now()
	l.tried = d.Status
	for range persistTries {
		// The controller writes to the same object. Its writes change nothing here, so the loop tries again on the newest
		// version; each time it checks that no one changed the durable part.
		if err = l.persistOnce(ctx, group, d); !apierrors.IsConflict(err) {
			break
		}
	}
	l.log.Debug("persist", "epoch", d.Status.Epoch, "took", time.Since(began), "error", err)
	if err != nil {
		// Unknown outcome: the next pass reads what is really stored before it decides anything. A note that no one acts on, such
		// as the outcome of a request, may wait: without an API server the active site still needs its operator.
		l.loaded = l.onlyNotes(d) && !errors.Is(err, errOvertaken)
		return err
	}
	l.durable = d.Status
	return nil
}

// onlyNotes is true if a decision leaves unchanged what is durable of the active site, the epoch and what is under way.
func (l *loop) onlyNotes(d failover.Decision) bool {
	return d.Status.Epoch == l.durable.Epoch && d.Status.ActiveSite == l.durable.ActiveSite && d.Status.Transition == l.durable.Transition
}

// persistTries is how often the loop tries to write a decision while others write at the same time.
const persistTries = 3

func (l *loop) persistOnce(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, d failover.Decision) error {
	if l.version != "" && group.ResourceVersion == l.version {
		// The API server refuses the write unless the object is the version that this loop wrote last, so there is nothing to
		// read. If it has changed, the next try reads it.
		return wrap(l.apply(ctx, group, groupstatus.Of(group, d.Status, d.Views)), d)
	}
	live := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Live.Get(ctx, l.key, live); err != nil {
		return fmt.Errorf("read group before persisting: %w", err)
	}
	if live.UID != group.UID || !l.isOurs(live.Status) {
		return errOvertaken
	}
	if live.AwaitsRestore() && !group.AwaitsRestore() {
		return errOvertaken // asked for since this decision: the site to open would be empty (I25)
	}
	if v1alpha1.KeptFencedSince(group, live, d.Status.ActiveSite) {
		return errOvertaken // the same (I29)
	}
	if !l.onlyNotes(d) && !wantsTheSame(group, live) {
		return errOvertaken // it may rest on an order that was withdrawn: the gate is passed on no such word (I1)
	}
	return wrap(l.apply(ctx, live, groupstatus.Of(live, d.Status, d.Views)), d)
}

// wantsTheSame is true if people want the same of a group as in an older state of it: its specification and their orders are the same.
func wantsTheSame(known, live *v1alpha1.MysqlFailoverGroup) bool {
	return known.Generation == live.Generation && sameOrders(known.Annotations, live.Annotations)
}

func wrap(err error, d failover.Decision) error {
	if err != nil {
		return fmt.Errorf("persist epoch %d: %w", d.Status.Epoch, err)
	}
	return nil
}

// isForeign is true for a group that another release of the operator has claimed.
func (l *loop) isForeign(s v1alpha1.MysqlFailoverGroupStatus) bool {
	return s.Claim != nil && l.m.Lease != "" && s.Claim.Lease != "" && s.Claim.Lease != l.m.Lease
}

// isOurs is true if the status is what this loop wrote last, and no other release has claimed the group.
func (l *loop) isOurs(s v1alpha1.MysqlFailoverGroupStatus) bool {
	if l.isForeign(s) {
		return false
	}
	sameStep := (s.Transition == nil) == (l.durable.Transition == nil)
	if sameStep && s.Transition != nil {
		sameStep = s.Transition.Step == l.durable.Transition.Step
	}
	return sameStep && s.Epoch == l.durable.Epoch && s.ActiveSite == l.durable.ActiveSite
}

// apply writes the loop's own part of the status by server-side apply. It holds the resource version, so it fails if
// another write came in between.
func (l *loop) apply(ctx context.Context, live *v1alpha1.MysqlFailoverGroup, status v1alpha1.MysqlFailoverGroupStatus) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))
	u.SetNamespace(live.Namespace)
	u.SetName(live.Name)
	u.SetResourceVersion(live.ResourceVersion)
	l.version = ""
	if err := l.m.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(v1alpha1.ManagerMonitorStatus), client.ForceOwnership); err != nil {
		return err
	}
	l.version = u.GetResourceVersion()
	return nil
}

// countLosses puts the rows of lost transactions into the records once they are counted. Counting runs beside the loop;
// the next status has the result. An operator that restarts in between counts again.
func (l *loop) countLosses(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	if l.m.Losses == nil || !l.loaded || !slices.ContainsFunc(l.durable.Records, uncounted) {
		return
	}
	addresses := map[string]string{}
	for site, pod := range l.cluster().Newest(ctx, group) {
		addresses[site] = pod.Status.PodIP
	}
	l.countLossesAt(group, addresses)
}

func uncounted(r v1alpha1.FailoverRecord) bool {
	return r.LossExact && r.LostTransactions > 0 && r.LostRowsState == ""
}

func (l *loop) countLossesAt(group *v1alpha1.MysqlFailoverGroup, addresses map[string]string) {
	for i, r := range l.durable.Records {
		if !uncounted(r) || addresses[r.From] == "" {
			continue
		}
		if rows, state, done := l.m.Losses.Rows(group, r, addresses[r.From]); done {
			records := slices.Clone(l.durable.Records)
			records[i].LostRows, records[i].LostRowsState = rows, state
			l.durable.Records = records
		}
	}
}
