// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestARealMySQLTakesTheRenewedCertificate, and keeps the one that it has when the new key does not fit.
func TestARealMySQLTakesTheRenewedCertificate(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{TLS: true})
	c := &certificate{dir: s.Dir, server: s.Sidecar(t), now: time.Now, log: slog.New(slog.DiscardHandler)}
	look := func() (time.Time, string) {
		t.Helper()
		c.step(t.Context())
		c.step(t.Context())
		r := c.Report()
		if r.NotAfter == nil {
			t.Fatalf("report %+v", r)
		}
		return *r.NotAfter, r.Problem
	}
	first, problem := look()
	if problem != "" {
		t.Fatal(problem)
	}
	mysqltest.Eventually(t, "a certificate that ends later", func() bool {
		s.RenewCertificate(t)
		later, _ := look()
		return later.After(first)
	})
	shown, _ := look()
	s.SpoilKey(t)
	if kept, problem := look(); !kept.Equal(shown) || !strings.Contains(problem, "does not match") {
		t.Errorf("shows one until %v, before until %v; problem %q", kept, shown, problem)
	}
	if len(s.Exits()) != 0 {
		t.Errorf("mysqld ended: %v", s.Exits())
	}
}
