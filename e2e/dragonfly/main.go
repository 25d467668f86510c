// SPDX-License-Identifier: Apache-2.0

// Command dragonfly stands in for Dragonfly in the lab, where its binary cannot be had: a proxy that takes Dragonfly's flags and speaks
// its commands REPLTAKEOVER, INFO, ROLE and CLIENT KILL in front of a Valkey in the same container. Where Dragonfly differs from
// Valkey in what the operator may notice, this follows Dragonfly: a take-over is asked of the replica, and the old master ends itself
// afterwards; FAILOVER does not exist; CLIENT KILL knows no TYPE; with tls_ca_cert_file clients must show a certificate; a master tells
// no offset but each replica's lag. What it does not show is how Dragonfly performs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:], os.Environ())
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "dragonfly (proxy): %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args, environment []string) error {
	s, err := parseFlags(args, environment)
	if err != nil {
		return err
	}
	c, err := startChild(ctx, s)
	if err != nil {
		return err
	}
	defer c.remove()
	p := &proxy{settings: s, child: c, seats: make(chan struct{}, maxClients), taken: make(chan struct{})}
	return p.run(ctx)
}
