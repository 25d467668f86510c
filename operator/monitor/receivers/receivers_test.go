// SPDX-License-Identifier: Apache-2.0

package receivers_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/receivers"
)

var start = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// stage is a group of the active site a and two replicas.
type stage struct {
	verifying receivers.Verifying
	seen      failover.Snapshot
	decided   failover.Decision
	source    mysql.Source
	sourceErr error
	// fails are the sites that refuse.
	fails map[string]error
	asked []string
	read  int
}

func newStage() *stage {
	s := &stage{source: mysql.Source{TLS: true}, fails: map[string]error{}}
	s.seen.Now = start
	s.decided.Status.ActiveSite = "a"
	for _, name := range []string{"a", "b", "c"} {
		site := failover.Site{Name: name, MySQL: failover.MySQL{Direct: true, ReplicaOf: "a", IORunning: true}}
		site.Pod.UID = "pod-" + name
		s.seen.Sites = append(s.seen.Sites, site)
	}
	return s
}

// pass is one pass of the loop; it returns which sites were asked.
func (s *stage) pass(ctx context.Context) []string {
	s.asked = nil
	s.verifying.Step(ctx, receivers.Pass{
		Snapshot: s.seen, Decision: s.decided, Log: slog.New(slog.DiscardHandler),
		Source: func(context.Context, string) (mysql.Source, error) {
			s.read++
			return s.source, s.sourceErr
		},
		On: func(site string) receivers.Doer {
			return func(context.Context, func(context.Context, *mysql.DB) error) error {
				s.asked = append(s.asked, site)
				return s.fails[site]
			}
		},
	})
	return s.asked
}

func TestOneReceiverInAPass(t *testing.T) {
	s := newStage()
	for i, want := range [][]string{{"b"}, {"c"}, nil} {
		before := s.read
		if got := s.pass(t.Context()); !slices.Equal(got, want) {
			t.Errorf("pass %d asked %v, want %v", i+1, got, want)
		}
		if s.read != before && want == nil {
			t.Error("Secrets are read for nothing")
		}
		if s.verifying.Verified("c", "", "") {
			t.Errorf("pass %d: a site without a pod verifies", i+1)
		}
	}
	for _, tc := range []struct {
		site, pod, source string
		want              bool
	}{
		{"b", "pod-b", "a", true}, {"c", "pod-c", "a", true}, {"b", "another", "a", false}, {"b", "pod-b", "c", false}, {"a", "pod-a", "a", false},
		{"b", "", "a", false}, {"d", "pod-d", "a", false}, {"b", "pod-b", "", false},
	} {
		if got := s.verifying.Verified(tc.site, tc.pod, tc.source); got != tc.want {
			t.Errorf("%+v: %t", tc, got)
		}
	}
	var none receivers.Verifying
	if none.Verified("b", "", "") {
		t.Error("nothing is known, and a site without a pod verifies")
	}
}

// TestOneThatCannotVerifyIsLeftAlone: each try takes its receiver away for a moment. The others do not wait for it.
func TestOneThatCannotVerifyIsLeftAlone(t *testing.T) {
	s := newStage()
	s.fails["b"] = errors.New("no")
	for i, step := range []struct {
		after time.Duration
		want  []string
	}{
		{0, []string{"b", "c"}}, {time.Second, nil}, {29 * time.Second, nil}, {30 * time.Second, []string{"b"}}, {31 * time.Second, nil},
	} {
		s.seen.Now = start.Add(step.after)
		if got := s.pass(t.Context()); !slices.Equal(got, step.want) {
			t.Errorf("step %d asked %v, want %v", i, got, step.want)
		}
	}
	if s.verifying.Verified("b", "pod-b", "a") {
		t.Error("what it refused passes for done")
	}
	s.seen.Sites[2].Pod.UID, s.seen.Now, s.fails["b"] = "another", start.Add(time.Minute), nil
	if got := s.pass(t.Context()); !slices.Equal(got, []string{"c"}) {
		t.Errorf("another pod, tried less often: asked %v", got)
	}
}

// TestNothingIsDoneBesideAFailover: nor to a receiver that somebody has stopped, that follows somebody else, or of which nothing is known.
func TestNothingIsDoneBesideAFailover(t *testing.T) {
	for name, change := range map[string]func(*stage){
		"something is to be done":       func(s *stage) { s.decided.Effects = []failover.Effect{failover.Drain{Site: "b"}} },
		"nobody may write":              func(s *stage) { s.decided.Hold = true },
		"the role changes":              func(s *stage) { s.decided.Status.Transition = &failover.Transition{} },
		"a planned failover waits":      func(s *stage) { s.decided.Status.Planned = &failover.Planned{Phase: v1alpha1.PlannedWaiting} },
		"nobody is active":              func(s *stage) { s.decided.Status.ActiveSite, s.seen.Sites[1].MySQL.ReplicaOf = "", "" },
		"how to verify is not known":    func(s *stage) { s.sourceErr = errors.New("away") },
		"there is nothing to verify":    func(s *stage) { s.source.TLS = false },
		"nobody could ask it":           func(s *stage) { s.seen.Sites[1].MySQL.Direct = false },
		"it is being cloned":            func(s *stage) { s.seen.Sites[1].MySQL.Cloning = true },
		"it follows another site":       func(s *stage) { s.seen.Sites[1].MySQL.ReplicaOf = "c" },
		"its receiver does not run":     func(s *stage) { s.seen.Sites[1].MySQL.IORunning = false },
		"the active site has no source": func(s *stage) { s.decided.Status.ActiveSite, s.seen.Sites[1].MySQL.ReplicaOf = "b", "b" },
	} {
		s := newStage()
		s.seen.Sites = s.seen.Sites[:2]
		change(s)
		if got := s.pass(t.Context()); got != nil {
			t.Errorf("%s: asked %v", name, got)
		}
	}
	s := newStage()
	s.decided.Effects = []failover.Effect{failover.Select{}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.pass(ended); got != nil {
		t.Errorf("the time is over: asked %v", got)
	}
	s.decided.Status.Planned = &failover.Planned{Phase: v1alpha1.PlannedSucceeded}
	if got := s.pass(t.Context()); len(got) != 1 {
		t.Errorf("an ordinary pass, after a planned failover: asked %v", got)
	}
}
