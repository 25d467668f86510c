// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"
)

func TestOpenRefuses(t *testing.T) {
	for name, target := range map[string]Target{"no address": {User: "u"}, "no user": {Addr: "h:1"}} {
		if _, err := Open(target); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestConfigOf(t *testing.T) {
	c := configOf(Target{Addr: "db:3306", User: "u", Password: "p", TLS: &tls.Config{}, DialTimeout: time.Second, Program: "mfg, operator: 1"})
	if c.TLS == nil || c.AllowFallbackToPlaintext || c.AllowCleartextPasswords || c.AllowNativePasswords || c.MultiStatements {
		t.Errorf("weaker than asked: %+v", c)
	}
	if c.Net != "tcp" || configOf(Target{Addr: "/run/mysqld.sock", User: "u"}).Net != "unix" {
		t.Error("an address that begins with a slash is a socket, any other is not")
	}
	if c.ConnectionAttributes != "program_name:mfg  operator  1" {
		t.Errorf("the program's name must not bring attributes of its own: %q", c.ConnectionAttributes)
	}
}

// TestEveryCallEndsWithItsContext asks a server that accepts and never answers, as one that is frozen or cut off does.
func TestEveryCallEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	db, err := Open(Target{Addr: l.Addr().String(), User: "u", DialTimeout: time.Second, QueryTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	calls := map[string]func(context.Context) error{
		"Status":          func(ctx context.Context) error { _, err := db.Status(ctx); return err },
		"Fence":           func(ctx context.Context) error { _, err := db.Fence(ctx, FenceOptions{}); return err },
		"OpenWrites":      db.OpenWrites,
		"StopReceiver":    db.StopReceiver,
		"StartApplier":    db.StartApplier,
		"DropReplication": db.DropReplication,
		"Follow": func(ctx context.Context) error {
			return db.Follow(ctx, Source{Host: "h", Port: 1, User: "u"})
		},
		"Clone":       func(ctx context.Context) error { return db.Clone(ctx, Donor{Host: "h", Port: 1, User: "u"}) },
		"CloneStatus": func(ctx context.Context) error { _, err := db.CloneStatus(ctx); return err },
		"BeginWindow": db.BeginWindow,
		"EndWindow":   db.EndWindow,
		"SetOfflineMode": func(ctx context.Context) error {
			return db.SetOfflineMode(ctx, true)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("want the context's error, got %v", err)
			}
			if took := time.Since(start); took > 500*time.Millisecond {
				t.Errorf("took %s", took)
			}
		})
	}
}
