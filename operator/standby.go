// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/controller"
	"github.com/mysql-mfg/mfg/operator/leading"
	"github.com/mysql-mfg/mfg/operator/server"
)

// Terms of leadership: a leader that lost the API server stops leading before another can begin.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// standbyRetryPeriod is how often the Lease is renewed if another replica waits for it, and lockPatience how long one request of the
	// election may take then. A leader speaks for 2.75 s after a renewal (leading.SpeaksFor, less what a slow clock takes), so it falls
	// silent only if a renewal takes longer than 1.75 s.
	standbyRetryPeriod = time.Second
	lockPatience       = 2 * time.Second
)

func (s settings) retryPeriod() time.Duration {
	if s.hotStandby {
		return standbyRetryPeriod
	}
	return retryPeriod
}

// lock returns the lock of the election, nil for the manager's own.
func (s settings) lock(config *rest.Config, term *leading.Term) (resourcelock.Interface, error) {
	if !s.hotStandby {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find own name: %w", err)
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = lockPatience
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client of the election: %w", err)
	}
	term.Own = leading.Promise(host + "_" + string(uuid.NewUUID()))
	return &leading.Lock{Term: term, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: leaseName}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: term.Own},
	}}, nil
}

type standbyParts struct {
	answers server.Authority
	term    *leading.Term
	log     *slog.Logger
}

// addStandby adds what a second replica needs, and returns what answers sidecars.
func addStandby(mgr ctrl.Manager, s settings, p standbyParts) (server.Authority, error) {
	if !s.hotStandby {
		return p.answers, nil
	}
	for _, part := range []manager.Runnable{
		leading.Watch{Term: p.term, Reader: mgr.GetAPIReader(), Lease: client.ObjectKey{Namespace: s.namespace, Name: leaseName}, Elected: mgr.Elected(), Log: p.log},
		leading.Warm{Term: p.term, Cache: mgr.GetCache(), Kinds: append(controller.Cached(), &v1alpha1.MysqlBackup{})},
		leading.Label{Term: p.term, Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Pod: client.ObjectKey{Namespace: s.namespace, Name: s.holder}, Log: p.log},
	} {
		if err := mgr.Add(part); err != nil {
			return nil, fmt.Errorf("add what a standby needs: %w", err)
		}
	}
	return leading.Door{Answers: p.answers, Term: p.term}, nil
}
