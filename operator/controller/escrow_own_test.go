// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// With a certificate of the operator's own, the group's Secret says nothing about the endpoint.
func TestTheOwnEscrowEndpointIsBelievedByItsAuthority(t *testing.T) {
	w := encryptedWorld(t, withTLS)
	s := &scope.Scope{Group: w.group(), Key: scopetest.Key, Now: time.Now()}
	var asked []string
	w.r.encryption.OwnAuthorities = func() []byte { return []byte("own") }
	w.r.encryption.ReachEscrow = func(_ context.Context, authorities []byte) error {
		asked = append(asked, string(authorities))
		return errors.New("connection refused")
	}
	if why := w.r.encryption.EscrowTrouble(w.ctx, s); !strings.Contains(why, "refused") || !strings.Contains(why, "operator made") || fmt.Sprint(asked) != "[own]" {
		t.Errorf("%q, asked with %q", why, asked)
	}
}

// Every site that has a token is kept believing, and an error of that is told.
func TestSitesWithATokenAreKeptBelieving(t *testing.T) {
	w := encryptedWorld(t, withTLS)
	kept := map[string]bool{}
	var fails error
	w.r.encryption.KeepTrust = func(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site string) error {
		kept[site] = true
		return fails
	}
	w.reconcile()
	if len(kept) == 0 {
		t.Error("nobody is kept believing")
	}
	fails = errors.New("no authority yet")
	s := &scope.Scope{Group: w.group(), Key: scopetest.Key, Now: time.Now()}
	if err := w.r.encryption.Keep(w.ctx, s); err == nil || !strings.Contains(err.Error(), "no authority yet") {
		t.Errorf("%v", err)
	}
}
