// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/volumelock"
	"github.com/mysql-mfg/mfg/sidecar/agent"
	"github.com/mysql-mfg/mfg/sidecar/escrow"
	"github.com/mysql-mfg/mfg/sidecar/fence"
	"github.com/mysql-mfg/mfg/sidecar/probe"
	"github.com/mysql-mfg/mfg/sidecar/watchdog"
)

const shutdownTimeout = time.Second

// run guards the MySQL of this pod until ctx ends.
func run(ctx context.Context, s settings, log *slog.Logger) error {
	log = log.With("namespace", s.namespace, "group", s.group, "site", s.site)
	if os.Getpid() == 1 {
		// Without a shared process namespace, this sidecar would say that no mysqld runs although one does.
		return errors.New("the process namespace of the pod is not shared: set shareProcessNamespace: true")
	}
	unlock, err := volumelock.Take(ctx, s.stateDir, log)
	if err != nil {
		return err
	}
	defer unlock()
	volumeID, err := agent.Store{Dir: s.stateDir}.VolumeID()
	if err != nil {
		return err
	}
	config, beside, done, err := connect(s, log)
	if err != nil {
		return err
	}
	defer done()
	config.VolumeID = volumeID
	timer, err := watchdog.Open(s.runDir)
	if err != nil {
		return err
	}
	// The mapping stays until the process ends: goroutines that still run then may move the deadline.
	config.Watchdog = timer
	measures, closeMeasures, err := watchMeasures(s, log)
	if err != nil {
		return err
	}
	defer closeMeasures()
	config.Measures = measures
	config.Measured = measures
	a, err := agent.New(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	if beside.keyring != nil {
		beside.keyring.Open = a.Open
	}
	beside.writes.Open = a.Open
	defer runKeyring(ctx, beside.keyring)()
	defer runCertificate(ctx, beside.certificate)()
	defer runWrites(ctx, beside.writes)()
	measures.Answers = a.Answers
	go measures.Run(ctx)
	go beside.engines.run(ctx)
	go beside.logins.run(ctx)
	defer cancel()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return serve(ctx, a, listener)
}

// serve runs the agent and its server until ctx ends or the server fails.
func serve(ctx context.Context, a *agent.Agent, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.Start(ctx)
	server := a.Server(listener.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- a.Serve(server, listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	cancel()
	// Fence first: the requests that are under way may take longer than the kubelet waits.
	a.Stop()
	ending, cancelEnding := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancelEnding()
	if shutdownErr := server.Shutdown(ending); errors.Is(shutdownErr, context.DeadlineExceeded) {
		_ = server.Close()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// beside are the parts that run beside the agent and have nothing to do with who may write. keyring is nil on a site without
// data-at-rest encryption, certificate on one without TLS.
type beside struct {
	keyring     *escrow.Agent
	certificate *certificate
	writes      *probe.Agent
	engines     *engines
	logins      *logins
}

// connect makes an agent's configuration with its connections to the outside.
func connect(s settings, log *slog.Logger) (agent.Config, beside, func(), error) {
	failed := func(err error) (agent.Config, beside, func(), error) { return agent.Config{}, beside{}, nil, err }
	clock, err := agent.NewClock()
	if err != nil {
		return failed(err)
	}
	watch, err := openMySQL(s, "mfg sidecar (watch)")
	if err != nil {
		return failed(err)
	}
	change, err := openMySQL(s, "mfg sidecar (fence)")
	if err != nil {
		return failed(errors.Join(err, watch.Close()))
	}
	prepared, err := openMySQL(s, "mfg sidecar (xa)")
	if err != nil {
		return failed(errors.Join(err, watch.Close(), change.Close()))
	}
	procs := agent.Procfs{Root: "/proc", Datadir: s.datadir}
	keyring, closeKeyring, err := watchKeyring(s, procs, log)
	if err != nil {
		return failed(errors.Join(err, watch.Close(), change.Close(), prepared.Close()))
	}
	shown, closeShown, err := watchCertificate(s, log)
	if err != nil {
		closeKeyring()
		return failed(errors.Join(err, watch.Close(), change.Close(), prepared.Close()))
	}
	writes, closeWrites, err := watchWrites(s, log)
	if err != nil {
		closeKeyring()
		closeShown()
		return failed(errors.Join(err, watch.Close(), change.Close()))
	}
	// It opens no connection that needs closing.
	own, err := watchLogins(s, log)
	if err != nil {
		closeKeyring()
		closeShown()
		closeWrites()
		return failed(errors.Join(err, watch.Close(), change.Close(), prepared.Close()))
	}
	tables := &engines{datadir: s.datadir, log: log}
	keys := agent.NewKeys(s.authority)
	site := fence.Site{Namespace: s.namespace, Group: s.group, Name: s.site}
	asker := client.New((&agent.Dialer{}).DialContext)
	done := func() {
		asker.Close()
		_ = watch.Close()
		_ = change.Close()
		_ = prepared.Close()
		closeKeyring()
		closeShown()
		closeWrites()
	}
	return agent.Config{
		Site: site, Peers: s.peers, PodUID: s.podUID, BootID: rand.Text(),
		Lease: s.leaseTimeout, PeerCheck: s.peerCheckInterval, FenceTimeout: s.fenceTimeout, LeaveTimeout: s.leaveTimeout,
		MySQL: watch, Changer: change, Prepared: prepared.PreparedXA,
		Network:   agent.HTTPNetwork{Client: asker, OperatorURL: s.operatorURL, Site: site, PodUID: s.podUID},
		Processes: procs,
		Volume:    agent.Store{Dir: s.stateDir},
		Verify:    keys.Verify, Anchor: keys.Anchor, ReportKey: agent.ReportKeyFile(s.reportKeyFile),
		Keyring: keyringOf(keyring), Certificate: certificateOf(shown), WriteProbe: writes, Engines: tables, Logins: own,
		Archiver: archiverOf(s.archiverStatus), Clock: clock, Log: log,
	}, beside{keyring: keyring, certificate: shown, writes: writes, engines: tables, logins: own}, done, nil
}

// archiverOf returns a function that reads the status of the archiver; nil without one.
func archiverOf(path string) func() (wire.ArchiverStatus, error) {
	if path == "" {
		return nil
	}
	return agent.ArchiverStatusFile(path)
}

// adminTarget is the admin interface of this pod's MySQL, which has room when all connections are taken.
func adminTarget(s settings, own *account, program string) mysql.Target {
	return mysql.Target{
		Addr: net.JoinHostPort(s.podIP, strconv.Itoa(wire.PortMySQLAdmin)),
		User: mysql.AccountSidecar, Passwords: own.passwords,
		TLS: tlsConfig(filepath.Join(s.tlsDir, caFile)), Program: program,
	}
}

// openMySQL prepares connections to the admin interface.
func openMySQL(s settings, program string) (*mysql.DB, error) {
	own, err := newAccount(s.accountsDir)
	if err != nil {
		return nil, err
	}
	return mysql.Open(adminTarget(s, own, program))
}

// watchLogins makes the part that reports which password the sidecar logs in with.
func watchLogins(s settings, log *slog.Logger) (*logins, error) {
	own, err := newAccount(s.accountsDir)
	if err != nil {
		return nil, err
	}
	return &logins{account: own, target: adminTarget(s, own, "mfg sidecar (password)"), accepts: mysql.Accepts, log: log}, nil
}
