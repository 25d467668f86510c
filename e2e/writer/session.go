// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/e2e/resp"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
	"github.com/mysql-mfg/mfg/e2e/writer/session"
)

// lastLook is how long a session writer tries to look for its sessions at the end.
const lastLook = 20 * time.Second

// runSessions keeps sessions in a cache.
func runSessions(ctx context.Context, args []string) error {
	var o options
	var sessions int
	var cert, key string
	f := flag.NewFlagSet("writer session", flag.ContinueOnError)
	f.StringVar(&o.addr, "addr", "", "host:port of the cache")
	f.StringVar(&o.passFile, "password-file", "", "file with its password; empty: none")
	f.StringVar(&o.id, "id", "sessions", "name of this writer; one that was used before finds the sessions of that one")
	f.StringVar(&o.journal, "journal", "-", "file for the journal, - for standard output")
	f.StringVar(&o.tlsCA, "tls-ca", "", "CA certificates; empty: no TLS")
	f.StringVar(&o.tlsName, "tls-server-name", "", "name that the server's certificate must carry; empty: the host of addr")
	f.StringVar(&cert, "tls-cert", "", "own certificate, shown where the server asks for one")
	f.StringVar(&key, "tls-key", "", "its key")
	f.IntVar(&sessions, "sessions", 8, "sessions, each with its own connection, 1 to 256")
	f.Float64Var(&o.rate, "rate", 200, "writes a second, all sessions together")
	f.Float64Var(&o.refusedRate, "refused-rate", 100, "attempts a second while they are refused")
	f.DurationVar(&o.dialTimeout, "dial-timeout", 500*time.Millisecond, "time for one connection")
	f.DurationVar(&o.timeout, "timeout", time.Second, "time for one command")
	f.DurationVar(&o.last, "duration", 0, "stop after this time; 0: at SIGTERM")
	if err := f.Parse(args); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	if o.addr == "" || sessions < 1 || sessions > 256 {
		return errors.New("give --addr, and 1 to 256 --sessions")
	}
	store := &session.Store{Writer: o.id, Dialer: resp.Dialer{DialTimeout: o.dialTimeout, Timeout: o.timeout}}
	var err error
	if store.Dialer.TLS, err = o.sessionTLS(cert, key); err != nil {
		return err
	}
	if o.passFile != "" {
		raw, err := os.ReadFile(o.passFile)
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		store.Dialer.Password = strings.TrimSpace(string(raw))
	}
	return keepSessions(ctx, o, sessions, store)
}

func (o options) sessionTLS(cert, key string) (*tls.Config, error) {
	conf, err := o.tls()
	if err != nil || conf == nil || cert == "" {
		return conf, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}

func keepSessions(ctx context.Context, o options, sessions int, store *session.Store) error {
	out := io.Writer(os.Stdout)
	if o.journal != "-" {
		file, err := os.OpenFile(o.journal, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("create journal: %w", err)
		}
		defer func() { _ = file.Close() }()
		out = file
	}
	if o.last > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.last)
		defer cancel()
	}
	j := journal.NewWriter(out, o.id, load.Now(), time.Now())
	store.Lost = func(worker int, seq int64, found string) { j.Lost(worker, seq, load.Now(), found) }
	return load.Run(ctx, load.Config{
		Address: o.address, Connect: store.Connect, Concurrency: sessions, Rate: o.rate, RefusedRate: o.refusedRate,
		// What was written last is looked for, too, before the journal is closed.
		Finish: func() error { return lookAtLast(store, o.addr) },
	}, j)
}

// lookAtLast looks for all sessions once more.
func lookAtLast(store *session.Store, address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), lastLook)
	defer cancel()
	for {
		_, err := store.Check(ctx, address)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("look for the sessions at the end: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// checkSessions prints what follows from the journals of session writers, and fails when sessions were lost or two servers took
// writes at the same time.
func checkSessions(out io.Writer, paths []string) error {
	var journals []journal.Journal
	for _, path := range paths {
		j, err := journal.ReadFile(path)
		if err != nil {
			return err
		}
		journals = append(journals, j)
		fmt.Fprintf(out, "%s: %d acknowledged, %d unknown, refused %v, whole %t\n", j.Writer, len(j.Commits), len(j.Unknown), j.Refused, j.Complete)
	}
	v := session.Judge(journals...)
	for _, l := range v.Lost {
		fmt.Fprintf(out, "%s: session %d: write %d was acknowledged, and found was %s\n", l.Writer, l.Worker, l.Seq, l.Found)
	}
	acked := journal.Commits(journals...)
	for _, p := range journal.Periods(acked) {
		fmt.Fprintf(out, "%-12s %6d writes, %s to %s\n", p.Site, p.Commits, p.FirstAck, p.LastAck)
	}
	if pause, ok := journal.LongestPause(acked, 0); ok {
		fmt.Fprintf(out, "longest pause of all sessions: %s\n", pause.Length())
	}
	for _, o := range v.Overlaps {
		fmt.Fprintln(out, o)
	}
	if v.LostSessions+len(v.Overlaps) > 0 {
		return fmt.Errorf("%d of %d sessions were lost, and two servers took writes at the same time %d times",
			v.LostSessions, v.Sessions, len(v.Overlaps))
	}
	return nil
}
