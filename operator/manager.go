// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/controller"
	"github.com/mysql-mfg/mfg/operator/leading"
	"github.com/mysql-mfg/mfg/operator/trim"
)

// newManager makes the manager. It caches only what the operator manages itself: with every Secret and ConfigMap of a
// large cluster in memory, operators have grown to gigabytes.
func newManager(s settings, term *leading.Term) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find cluster: %w", err)
	}
	// With a thousand groups the first looks after a start make some thousand requests, and polls wait for their own.
	config.QPS, config.Burst = 300, 600
	options := cache.Options{ByObject: controller.CacheByObject(), DefaultTransform: trim.Transform()}
	if list := elements(s.watchNamespaces); len(list) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range list {
			options.DefaultNamespaces[name] = cache.Config{}
		}
	}
	lease, renew, retry := leaseDuration, renewDeadline, s.retryPeriod()
	lock, err := s.lock(config, term)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: options,
		// The operator reads Secrets one by one when it needs them: it may not list them, and keeps none in memory.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		// Our own listeners serve both, and bound what a stranger can make them do.
		Metrics: metricsserver.Options{BindAddress: nowhere}, HealthProbeBindAddress: nowhere,
		LeaderElection: s.leaderElect, LeaderElectionID: leaseName, LeaderElectionNamespace: s.namespace,
		LeaderElectionReleaseOnCancel: true, LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		LeaderElectionResourceLockInterface: lock,
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return mgr, addPlain(mgr, s)
}
