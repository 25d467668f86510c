// SPDX-License-Identifier: Apache-2.0

// Package turns keeps which group's turn it is to get the pods of another version of the operator. The turn is the holder of one Lease, which
// changes only from the version that was read: even if a process dies or stands still, two groups never have it. operator/upgrade decides.
package turns

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/pace"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/upgrade"
)

var (
	eventBegan   = events.Normal(v1alpha1.ReasonUpgradeBegan, "Update")
	eventEnded   = events.Normal(v1alpha1.ReasonUpgradeEnded, "Update")
	eventStopped = events.Warning(v1alpha1.ReasonUpgradeStopped, "Wait")

	seriesBehind  = metrics.Gauge(metrics.Operator, "operator_upgrade_groups_behind", "Groups with pods of an older version of the operator.")
	seriesStopped = metrics.Gauge(metrics.Operator, "operator_upgrade_stopped", "1 while no group is given the pods of the operator's version, because one was not healthy with them.")
)

const (
	// every is how often the Keeper looks whose turn it is.
	every = 5 * time.Second
	// lookTimeout bounds one look.
	lookTimeout = 30 * time.Second
)

// Options is what a Keeper needs.
type Options struct {
	// Client reads groups from the cache and writes the Lease; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Lease is the Lease of the turn.
	Lease types.NamespacedName
	// Own is the Lease with which this process leads, as namespace/name; empty without leader election.
	Own string
	// Namespaces are those whose groups this operator operates; empty means all.
	Namespaces []string
	Policy     upgrade.Policy
	Recorder   *events.Recorder
	Log        *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// Keeper gives turns. It runs while its process leads.
type Keeper struct {
	Options
	// Revision names this program and its installation's settings.
	Revision string
	// Wake asks for a look at a group soon.
	Wake func(types.NamespacedName)

	mu   sync.Mutex
	turn upgrade.Turn
}

// Start looks until the context ends. It is a manager's Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		look, cancel := context.WithTimeout(ctx, lookTimeout)
		err := k.Look(look)
		cancel()
		if err != nil && ctx.Err() == nil {
			k.Log.Warn("cannot tell whose turn the upgrade is; it continues when that is known", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// NeedLeaderElection implements LeaderElectionRunnable: only the leader gives turns.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Has says whether a group has the persisted turn.
func (k *Keeper) Has(group types.NamespacedName) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.turn.Group == group.String()
}

// Look decides once, and persists a change before anyone can act on it.
func (k *Keeper) Look(ctx context.Context) error {
	lease, err := k.lease(ctx)
	if err != nil {
		return err
	}
	turn := read(lease)
	k.note(turn)
	groups, objects, err := k.groups(ctx, turn.Group)
	if err != nil {
		return err
	}
	next := upgrade.Next(turn, groups, k.Policy, k.Now())
	write(lease, next)
	if told := k.describe(lease); told || next != turn {
		if err := k.Client.Update(ctx, lease); err != nil {
			return fmt.Errorf("write the turn: %w", err)
		}
		k.note(next)
	}
	k.tell(turn, next, objects)
	if next.Group != "" && next.Group != turn.Group {
		k.Wake(keyOf(next.Group))
	}
	count := 0
	for _, g := range groups {
		if g.Behind {
			count++
		}
	}
	seriesBehind.WithLabelValues().Set(float64(count))
	stopped := 0.0
	if next.Stopped != "" {
		stopped = 1
	}
	seriesStopped.WithLabelValues().Set(stopped)
	return nil
}

func (k *Keeper) note(t upgrade.Turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turn = t
}

// describe tells people and the plugin, on the Lease, how turns are paced and which version leads. It says whether that is news.
func (k *Keeper) describe(lease *coordinationv1.Lease) (news bool) {
	for key, value := range map[string]string{
		v1alpha1.AnnotationUpgradePolicy:   fmt.Sprintf("one group at a time, healthy for %s before the next; stops after %s; window %s", k.Policy.Pause, k.Policy.StopAfter, k.Policy.Window),
		v1alpha1.AnnotationUpgradeWindow:   k.Policy.Window.Text(),
		v1alpha1.AnnotationUpgradeRevision: k.Revision,
	} {
		if was, is := lease.Annotations[key]; !is || was != value {
			lease.Annotations[key], news = value, true
		}
	}
	return news
}

// lease reads the Lease of the turn live, and makes it if it is missing.
func (k *Keeper) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := k.Live.Get(ctx, k.Lease, lease)
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Lease.Namespace, Name: k.Lease.Name, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator},
		}}
		err = k.Client.Create(ctx, lease)
	}
	if err != nil {
		return nil, fmt.Errorf("read the turn: %w", err)
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	return lease, nil
}

// groups returns the groups of this operator as the decision sees them, and all objects that were read. It reads the one that has the turn
// live: the cache's copy may be older than its turn. A group that has left this operator counts as gone, or its turn would never end.
func (k *Keeper) groups(ctx context.Context, holder string) ([]pace.Group, map[string]*v1alpha1.MysqlFailoverGroup, error) {
	list := &v1alpha1.MysqlFailoverGroupList{}
	if err := k.Client.List(ctx, list); err != nil {
		return nil, nil, fmt.Errorf("list groups: %w", err)
	}
	objects := map[string]*v1alpha1.MysqlFailoverGroup{}
	for i := range list.Items {
		objects[client.ObjectKeyFromObject(&list.Items[i]).String()] = &list.Items[i]
	}
	if err := k.readHolder(ctx, holder, objects); err != nil {
		return nil, nil, err
	}
	var groups []pace.Group
	for name, g := range objects {
		if k.left(name, objects) == "" {
			groups = append(groups, pace.See(g, k.Revision))
		}
	}
	return groups, objects, nil
}

// readHolder reads the group that has the turn live. One that cannot be read keeps its turn: nobody knows what a bad version does to it now.
// One outside the watched namespaces is not read: the API server would refuse that for ever, and another operator may have its pods.
func (k *Keeper) readHolder(ctx context.Context, holder string, objects map[string]*v1alpha1.MysqlFailoverGroup) error {
	if holder == "" || !k.watches(keyOf(holder).Namespace) {
		delete(objects, holder)
		return nil
	}
	live := &v1alpha1.MysqlFailoverGroup{}
	err := k.Live.Get(ctx, keyOf(holder), live)
	switch {
	case apierrors.IsNotFound(err):
		delete(objects, holder)
	case err != nil:
		return fmt.Errorf("read the group that has the turn: %w", err)
	default:
		objects[holder] = live
	}
	return nil
}

// watches is true for a namespace whose groups this operator operates.
func (k *Keeper) watches(namespace string) bool {
	return len(k.Namespaces) == 0 || slices.Contains(k.Namespaces, namespace)
}

// left says why a group is not this operator's to upgrade; empty if it is, or if it was deleted.
func (k *Keeper) left(name string, objects map[string]*v1alpha1.MysqlFailoverGroup) string {
	if namespace := keyOf(name).Namespace; !k.watches(namespace) {
		return "this operator does not watch namespace " + namespace
	}
	g := objects[name]
	switch {
	case g == nil:
		return ""
	case g.DeletionTimestamp != nil:
		// None of its pods is replaced any more. A finalizer may keep it for ever, and the others must not wait for that.
		return "it is being deleted"
	}
	return pace.Elsewhere(g, k.Own)
}

// tell emits what happened, on the group that it happened to.
func (k *Keeper) tell(before, after upgrade.Turn, objects map[string]*v1alpha1.MysqlFailoverGroup) {
	say := func(group string, e events.Event, note string) {
		if objects[group] != nil {
			k.Recorder.Emit(objects[group], nil, e, "%s", note)
		}
	}
	if before.Group == "" && after.Group != "" {
		say(after.Group, eventBegan, "It is the group's turn to be given the pods of this version of the operator, one site after the other")
	}
	if before.Group != "" && after.Group == "" {
		note, key := "The group's turn is over", keyOf(before.Group)
		if why := k.left(before.Group, objects); why != "" {
			note += ": " + why
			k.Log.Info("the group that had the turn of the upgrade has left this operator; its turn is over",
				"namespace", key.Namespace, "group", key.Name, "why", why)
		}
		say(before.Group, eventEnded, note)
	}
	if before.Stopped == "" && after.Stopped != "" {
		k.Log.Warn("no other group is upgraded until a person resumes", "why", after.Stopped)
		say(after.Group, eventStopped, "No other group is upgraded: "+after.Stopped+". See docs/upgrades.md for how to go on")
	}
}

func keyOf(name string) types.NamespacedName {
	for i := range name {
		if name[i] == types.Separator {
			return types.NamespacedName{Namespace: name[:i], Name: name[i+1:]}
		}
	}
	return types.NamespacedName{Name: name}
}
