// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

// errOvertaken says that another writer changed the durable part: the decision rests on an old view and is dropped.
var errOvertaken = errors.New("status.cache was changed by somebody else")

// persistTries is how often the loop tries to write a decision while others write to other parts of status at the same time.
const persistTries = 3

// load reads what is durable from the API server when this loop starts, and after a write whose outcome is not known.
func (l *loop) load(ctx context.Context) error {
	if l.loaded {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	live := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Live.Get(ctx, l.key, live); err != nil {
		return fmt.Errorf("read group: %w", err)
	}
	l.durable, l.loaded = durable(live.Status.Cache), true
	return nil
}

func durable(s *v1alpha1.CacheStatus) cache.Durable {
	if s == nil {
		return cache.Durable{}
	}
	return cache.Durable{ActiveSite: s.ActiveSite, ActiveRun: s.ActiveRun, Transition: s.Transition.DeepCopy(), Last: s.LastPromotion.DeepCopy()}
}

// persist writes a decision with optimistic locking, read through the API reader.
func (l *loop) persist(ctx context.Context, k look) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	var err error
	for range persistTries {
		if err = l.persistOnce(ctx, k); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		l.loaded = false // status is read before anything else is decided
		return fmt.Errorf("persist: %w", err)
	}
	l.durable = k.decision.Status
	return nil
}

func (l *loop) persistOnce(ctx context.Context, k look) error {
	live := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Live.Get(ctx, l.key, live); err != nil {
		return fmt.Errorf("read group: %w", err)
	}
	if live.UID != k.group.UID || l.isForeign(live.Status) || !same(durable(live.Status.Cache), l.durable) {
		return errOvertaken
	}
	return l.apply(ctx, live, l.status(live, k))
}

// same compares what a decision rests on.
func same(a, b cache.Durable) bool {
	if a.ActiveSite != b.ActiveSite || (a.Transition == nil) != (b.Transition == nil) {
		return false
	}
	return a.Transition == nil || a.Transition.To == b.Transition.To && a.Transition.From == b.Transition.From &&
		a.Transition.StartedAt.Truncate(time.Microsecond).Equal(b.Transition.StartedAt.Truncate(time.Microsecond))
}

// isForeign is true for a group that another release of the operator has claimed.
func (l *loop) isForeign(s v1alpha1.MysqlFailoverGroupStatus) bool {
	return s.Claim != nil && l.m.Lease != "" && s.Claim.Lease != "" && s.Claim.Lease != l.m.Lease
}

// apply writes this loop's own part of the status by server-side apply; what it does not name goes. It has the resource version in it,
// so that a write in between makes it fail.
func (l *loop) apply(ctx context.Context, live *v1alpha1.MysqlFailoverGroup, status v1alpha1.MysqlFailoverGroupStatus) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	fields := map[string]any{}
	for _, key := range []string{"cache", "conditions"} {
		if value := all[key]; value != nil {
			fields[key] = value
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))
	u.SetNamespace(live.Namespace)
	u.SetName(live.Name)
	u.SetResourceVersion(live.ResourceVersion)
	return l.m.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(v1alpha1.ManagerCacheStatus), client.ForceOwnership)
}
