// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/probe"
)

// probeFile, in the state directory, is the file that the write probe writes to test the volume itself.
const probeFile = "write-probe"

// watchWrites makes the write probe, which writes as a client does. The caller sets its Open.
func watchWrites(s settings, log *slog.Logger) (*probe.Agent, func(), error) {
	own, err := newAccount(s.accountsDir)
	if err != nil {
		return nil, nil, err
	}
	db, err := mysql.Open(mysql.Target{
		Addr: net.JoinHostPort(s.podIP, strconv.Itoa(wire.PortMySQL)),
		User: mysql.AccountProbe, Passwords: own.probePasswords,
		TLS: tlsConfig(filepath.Join(s.tlsDir, caFile)), Program: "mfg sidecar (write probe)",
	})
	if err != nil {
		return nil, nil, err
	}
	return &probe.Agent{
		MySQL: db, Volume: probe.File{Path: filepath.Join(s.stateDir, probeFile)}, Unable: func() { forgetRights(s) }, Log: log,
	}, func() { _ = db.Close() }, nil
}

// runWrites tries to write until ctx ends.
func runWrites(ctx context.Context, a *probe.Agent) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	return func() { <-done }
}
