// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// options are the flags of run.
type options struct {
	addr, addrFile             string
	user, password, passFile   string
	table, id, group, site     string
	journal, kind              string
	tlsCA, tlsName             string
	concurrency                int
	rate, refusedRate          float64
	dialTimeout, timeout, last time.Duration
	retry                      time.Duration
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("writer run", flag.ContinueOnError)
	f.StringVar(&o.addr, "addr", "", "host:port to write to")
	f.StringVar(&o.addrFile, "addr-file", "", "file with host:port, read again before each connection")
	f.StringVar(&o.user, "user", "app", "MySQL account")
	f.StringVar(&o.password, "password", "", "its password")
	f.StringVar(&o.passFile, "password-file", "", "file with its password")
	f.StringVar(&o.table, "table", "app.writes", "table to insert into, with its database")
	f.StringVar(&o.id, "id", "writer", "name of this writer; one that was used before is refused by the primary key")
	f.StringVar(&o.group, "group", "orders", "failover group, to tell the site from the server's host name")
	f.StringVar(&o.site, "site", "", "write to this site only, directly (a probe); empty: wherever the address leads")
	f.StringVar(&o.kind, "kind", "", "what to commit: late, xa or ddl; empty: single rows")
	f.StringVar(&o.journal, "journal", "-", "file for the journal, - for standard output")
	f.StringVar(&o.tlsCA, "tls-ca", "", "CA certificates; empty: no TLS")
	f.StringVar(&o.tlsName, "tls-server-name", "", "name that the server's certificate must carry")
	f.IntVar(&o.concurrency, "concurrency", 4, "workers, each with its own connection")
	f.Float64Var(&o.rate, "rate", 200, "rows a second, all workers together")
	f.Float64Var(&o.refusedRate, "refused-rate", 20, "attempts a second while they are refused")
	f.DurationVar(&o.dialTimeout, "dial-timeout", 500*time.Millisecond, "time for one connection")
	f.DurationVar(&o.timeout, "timeout", time.Second, "time for one read or write")
	f.DurationVar(&o.retry, "retry", 0, "step between attempts to get through, all workers together; 0: each for itself, 20 to 50 ms")
	f.DurationVar(&o.last, "duration", 0, "stop after this time; 0: at SIGTERM")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("parse flags: %w", err)
	}
	if (o.addr == "") == (o.addrFile == "") {
		return o, errors.New("give one of --addr and --addr-file")
	}
	if o.concurrency < 1 || o.concurrency > 256 {
		return o, fmt.Errorf("--concurrency %d is not from 1 to 256", o.concurrency)
	}
	return o, nil
}

// address reads where to connect.
func (o options) address() (string, error) {
	if o.addrFile == "" {
		return o.addr, nil
	}
	raw, err := os.ReadFile(o.addrFile)
	if err != nil {
		return "", fmt.Errorf("read address: %w", err)
	}
	if addr := strings.TrimSpace(string(raw)); addr != "" {
		return addr, nil
	}
	return "", errors.New("read address: there is none")
}

func (o options) tls() (*tls.Config, error) {
	if o.tlsCA == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(o.tlsCA)
	if err != nil {
		return nil, fmt.Errorf("read CA certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("read CA certificates: none in %s", o.tlsCA)
	}
	name := o.tlsName
	if name == "" {
		name, _, _ = strings.Cut(o.addr, ":")
	}
	return &tls.Config{
		RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12,
		// Reconnecting is most of what these writers do while they wait, and a ticket spares both ends the certificate.
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.passFile != "" {
		raw, err := os.ReadFile(o.passFile)
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		o.password = strings.TrimSpace(string(raw))
	}
	kind, err := load.ParseKind(o.kind)
	if err != nil {
		return err
	}
	conf, err := o.tls()
	if err != nil {
		return err
	}
	out := io.Writer(os.Stdout)
	if o.journal != "-" {
		f, err := os.OpenFile(o.journal, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("create journal: %w", err)
		}
		defer func() { _ = f.Close() }()
		out = f
	}
	if o.last > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.last)
		defer cancel()
	}
	server := load.MySQL{
		User: o.user, Password: o.password, Table: o.table, Writer: o.id, Kind: kind, Group: o.group,
		TLS: conf, DialTimeout: o.dialTimeout, Timeout: o.timeout,
	}
	return load.Run(ctx, load.Config{
		Address: o.address, Connect: server.Connect, Site: o.site, Concurrency: o.concurrency,
		Rate: o.rate, RefusedRate: o.refusedRate, Retry: o.retry,
	}, journal.NewWriter(out, o.id, load.Now(), time.Now()))
}
