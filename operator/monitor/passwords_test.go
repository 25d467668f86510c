// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// TestAReceiverThatRefusesDoesNotKeepTheOthersWaiting: its site is tried, then the next one, in the same pass; one that hangs until the
// time of the pass is over comes last in the next pass. One receiver at most is changed in a pass.
func TestAReceiverThatRefusesDoesNotKeepTheOthersWaiting(t *testing.T) {
	l := newLoop(&Monitor{Options: Options{Log: slog.New(slog.DiscardHandler)}}, types.NamespacedName{}, func() {})
	replica := failover.MySQL{Direct: true, ReplicaOf: "a", IORunning: true}
	var s failover.Snapshot
	for _, name := range []string{"a", "b", "c", "d"} {
		l.sites[name] = &siteLink{}
		s.Sites = append(s.Sites, failover.Site{Name: name, MySQL: replica})
	}
	pass := func(give func(site string) error) (tried []string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l.giveOne(ctx, l.lacking(s, "a", 2), func(site string) error {
			tried = append(tried, site)
			err := give(site)
			switch {
			case err == nil:
				l.gave(site, "a", mysql.Source{Serial: 2})
			case errors.Is(err, context.DeadlineExceeded):
				cancel()
			}
			return err
		})
		return tried
	}
	refuses := func(refused string, err error) func(string) error {
		return func(site string) error {
			if site == refused {
				return err
			}
			return nil
		}
	}
	for i, step := range []struct {
		why  string
		give func(string) error
		want []string
	}{
		{"the next one is tried, and then no other", refuses("b", errors.New("no")), []string{"b", "c"}},
		{"it comes after one that was not tried", refuses("d", context.DeadlineExceeded), []string{"d"}},
		{"a site that was tried as often comes in its order", refuses("b", context.DeadlineExceeded), []string{"b"}},
		{"the one that hung comes last", refuses("b", context.DeadlineExceeded), []string{"d"}},
		{"one is left", refuses("", nil), []string{"b"}},
		{"all have it", refuses("", nil), nil},
	} {
		if got := pass(step.give); !slices.Equal(got, step.want) {
			t.Errorf("pass %d: tried %v, want %v: %s", i+1, got, step.want, step.why)
		}
	}
}

// TestWhoIsGivenThePasswordI21: one receiver in each pass, of those that receive from the active site and do not have it yet.
func TestWhoIsGivenThePasswordI21(t *testing.T) {
	const given = "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = 'secret'"
	all := []string{"STOP REPLICA IO_THREAD", given, "START REPLICA IO_THREAD"}
	for name, tc := range map[string]struct {
		change func(*stage, *failover.MySQL)
		want   bool
	}{
		"it receives":                 {func(*stage, *failover.MySQL) {}, true},
		"it has it":                   {func(s *stage, _ *failover.MySQL) { s.gave("west", "east", s.access.source) }, false},
		"it has that of another":      {func(s *stage, _ *failover.MySQL) { s.gave("west", "south", s.access.source) }, true},
		"nobody could ask it":         {func(_ *stage, m *failover.MySQL) { m.Direct = false }, false},
		"it is being cloned":          {func(_ *stage, m *failover.MySQL) { m.Cloning = true }, false},
		"it follows another site":     {func(_ *stage, m *failover.MySQL) { m.ReplicaOf = "south" }, false},
		"it does not receive":         {func(_ *stage, m *failover.MySQL) { m.IORunning = false }, false},
		"nobody has a connection":     {func(s *stage, _ *failover.MySQL) { delete(s.sites, "west") }, false},
		"the password cannot be read": {func(s *stage, _ *failover.MySQL) { s.access.err = errors.New("away") }, false},
	} {
		s := newStage(t)
		s.group.Status.Passwords = &v1alpha1.PasswordsStatus{Phase: v1alpha1.PasswordsSwitching, Accounts: []string{v1alpha1.AccountReplication}}
		for i := range s.seen.Sites {
			s.seen.Sites[i].MySQL.ReplicaOf, s.seen.Sites[i].MySQL.IORunning = "east", true
		}
		s.seen.Sites = append(s.seen.Sites[:1], s.seen.Sites[2:]...)
		for site := range s.sites { // so that only what is asked of the password fails
			if _, err := s.client.connection(t.Context(), s.group, s.sites[site], site); err != nil {
				t.Fatal(err)
			}
		}
		tc.change(s, &s.seen.Sites[1].MySQL)
		d := failover.Decision{Status: failover.Durable{ActiveSite: "east"}}
		s.givePasswords(t.Context(), s.group, s.seen, d)
		var want []string
		if tc.want {
			want = all
		}
		s.servers["west"].was(t, name, want...)
		s.servers["east"].was(t, "the active site receives nothing")
		if link := s.sites["west"]; tc.want && link.has("east") != 4 {
			t.Errorf("%s: it has password %d", name, link.has("east"))
		}
		// Known to have it, it is left alone.
		s.givePasswords(t.Context(), s.group, s.seen, d)
		s.servers["west"].was(t, name+", again")
		if s.servers["west"].refuse = "CHANGE REPLICATION"; tc.want {
			s.access.source.Serial++
			s.givePasswords(t.Context(), s.group, s.seen, d)
			if s.sites["west"].has("east") != 4 {
				t.Errorf("I21: %s: what it refused passes for given", name)
			}
		}
	}
	s := newStage(t)
	s.gave("nobody", "east", s.access.source)
}
