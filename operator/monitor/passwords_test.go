// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// askedAccess counts who asks for the password of replication.
type askedAccess struct {
	Access
	asked int
}

func (a *askedAccess) Replication(context.Context, *v1alpha1.MysqlFailoverGroup, string) (mysql.Source, error) {
	a.asked++
	return mysql.Source{}, errors.New("not in this test")
}

// TestNoReceiverIsTouchedWhileTheRoleMovesI13: a drain stops the receiver and counts on it; a new password must not start it.
func TestNoReceiverIsTouchedWhileTheRoleMovesI13(t *testing.T) {
	switching := &v1alpha1.PasswordsStatus{Phase: v1alpha1.PasswordsSwitching, Accounts: []string{v1alpha1.AccountReplication}}
	tests := map[string]struct {
		status *v1alpha1.PasswordsStatus
		d      failover.Decision
		want   int
	}{
		"calm":                  {switching, failover.Decision{}, 1},
		"nothing replaced":      {nil, failover.Decision{}, 0},
		"not yet":               {&v1alpha1.PasswordsStatus{Phase: v1alpha1.PasswordsIntroducing, Accounts: switching.Accounts}, failover.Decision{}, 0},
		"another account":       {&v1alpha1.PasswordsStatus{Phase: v1alpha1.PasswordsSwitching, Accounts: []string{v1alpha1.AccountClone}}, failover.Decision{}, 0},
		"who is active is said": {switching, failover.Decision{Effects: []failover.Effect{failover.Select{Site: "a"}}}, 1},
		"something is done":     {switching, failover.Decision{Effects: []failover.Effect{failover.Drain{Site: "b"}}}, 0},
		"on hold":               {switching, failover.Decision{Hold: true}, 0},
		"a transition":          {switching, failover.Decision{Status: failover.Durable{Transition: &failover.Transition{}}}, 0},
		"a planned failover":    {switching, failover.Decision{Status: failover.Durable{Planned: &failover.Planned{Phase: v1alpha1.PlannedWaiting}}}, 0},
		"one that is over":      {switching, failover.Decision{Status: failover.Durable{Planned: &failover.Planned{Phase: v1alpha1.PlannedSucceeded}}}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			access := &askedAccess{}
			l := newLoop(&Monitor{Options: Options{Access: access, Log: slog.New(slog.DiscardHandler)}}, types.NamespacedName{}, func() {})
			group := &v1alpha1.MysqlFailoverGroup{}
			group.Status.Passwords = tc.status
			l.givePasswords(t.Context(), group, failover.Snapshot{}, tc.d)
			if access.asked != tc.want {
				t.Errorf("asked %d times, want %d", access.asked, tc.want)
			}
		})
	}
}

// TestAPasswordGoesWithThePod: after another pod, or another source, it is not known which password the receiver has.
func TestAPasswordGoesWithThePod(t *testing.T) {
	link := &siteLink{podUID: "one", given: given{podUID: "one", source: "a", serial: 3}}
	if link.has("a") != 3 || link.has("b") != 0 {
		t.Errorf("has %d and %d", link.has("a"), link.has("b"))
	}
	link.podUID = "two"
	if link.has("a") != 0 {
		t.Error("another pod has the password of the last one")
	}
}
