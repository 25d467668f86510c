// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mysql-mfg/mfg/internal/door"
	"github.com/mysql-mfg/mfg/operator/server"
)

// nowhere as an address serves nothing.
const nowhere = "0"

// adder is the part of the manager that listeners need.
type adder interface {
	Add(runnable manager.Runnable) error
}

// plain is a listener without parameters: for metrics, and for the kubelet's probes.
type plain struct {
	name, addr string
	handler    http.Handler
	limits     door.Limits
}

// addPlain adds the listeners for metrics and probes. Both answer whether this process leads or not, and before it knows its groups.
func addPlain(mgr adder, s settings) error {
	scrape := http.NewServeMux()
	scrape.Handle("GET /metrics", promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	probes := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz"} {
		probes.Handle("GET "+path, http.StripPrefix(path, &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}))
	}
	for _, p := range []plain{
		// With a thousand groups a scrape is megabytes: few at a time are better, and no Prometheus asks this often.
		{server.ListenerMetrics, s.metricsAddr, scrape, door.Limits{Connections: 16, PerAddress: 3, Rate: 2, Burst: 10}},
		{server.ListenerProbes, s.probeAddr, probes, door.Limits{Connections: 64, PerAddress: 16, Rate: 20, Burst: 40}},
	} {
		if err := p.add(mgr); err != nil {
			return err
		}
	}
	return nil
}

func (p plain) add(mgr adder) error {
	if p.addr == nowhere || p.addr == "" {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", p.addr)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", p.name, err)
	}
	d := door.New(p.limits, func(reason string) { server.Refused.WithLabelValues(p.name, reason).Inc() })
	patience := time.Second
	return mgr.Add(&manager.Server{Name: p.name, Listener: d.Listen(l), ShutdownTimeout: &patience, Server: &http.Server{
		Handler: d.Handler(p.handler), MaxHeaderBytes: 8 << 10,
		ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 15 * time.Second, IdleTimeout: 90 * time.Second,
	}})
}
