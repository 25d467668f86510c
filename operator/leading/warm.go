// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Warm fills the caches before this process leads, and notes the claims of groups. It decides nothing.
type Warm struct {
	Term  *Term
	Cache ctrlcache.Cache
	// Kinds are what else is watched once this process leads.
	Kinds []client.Object
}

// NeedLeaderElection is false: it is for who does not lead yet.
func (w Warm) NeedLeaderElection() bool { return false }

// Start fills the caches and notes claims until ctx ends.
func (w Warm) Start(ctx context.Context) error {
	groups, err := w.Cache.GetInformer(ctx, &v1alpha1.MysqlFailoverGroup{})
	if err != nil {
		return fmt.Errorf("watch groups: %w", err)
	}
	note := func(obj any) {
		if group, ok := obj.(*v1alpha1.MysqlFailoverGroup); ok {
			w.Term.Claimed(group, time.Now())
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) }, DeleteFunc: func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if group, ok := obj.(*v1alpha1.MysqlFailoverGroup); ok {
			w.Term.Forget(group.UID)
		}
	}}
	if _, err := groups.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watch groups: %w", err)
	}
	for _, kind := range w.Kinds {
		if _, err := w.Cache.GetInformer(ctx, kind); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	<-ctx.Done()
	return nil
}
