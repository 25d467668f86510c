// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"

	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/tracing"
)

// addTraces adds the sender of failover traces, if a collector is named.
func addTraces(mgr ctrl.Manager, s settings, log *slog.Logger) error {
	if s.tracing == "" {
		return nil
	}
	exporter, err := tracing.New(tracing.Options{Endpoint: s.tracing, Version: version(), Log: log})
	if err != nil {
		// Traces are for looking back. Without the operator no group fails over.
		log.Error("no traces are sent: --tracing-endpoint cannot be used", "error", err)
		return nil
	}
	exporter.Watch = watchGroups(mgr.GetCache())
	return mgr.Add(exporter)
}

// watchGroups reports changes of groups as the cache learns of them. Each listener of the cache has its own queue: no other waits for it.
func watchGroups(c cache.Cache) func(context.Context, func(before, now *v1alpha1.MysqlFailoverGroup)) (func(), error) {
	return func(ctx context.Context, changed func(before, now *v1alpha1.MysqlFailoverGroup)) (func(), error) {
		informer, err := c.GetInformer(ctx, &v1alpha1.MysqlFailoverGroup{})
		if err != nil {
			return nil, fmt.Errorf("find the informer of groups: %w", err)
		}
		handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, now any) {
			old, is := before.(*v1alpha1.MysqlFailoverGroup)
			group, also := now.(*v1alpha1.MysqlFailoverGroup)
			if is && also {
				changed(old, group)
			}
		}})
		if err != nil {
			return nil, fmt.Errorf("listen to the informer of groups: %w", err)
		}
		return func() { _ = informer.RemoveEventHandler(handle) }, nil
	}
}
