// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

// bench is two servers, and all that a rotation stands on: a is active, and b a replica whose keyring is unsealed.
type bench struct {
	work    *work.Register
	facts   *scopetest.Facts
	said    *scopetest.Events
	servers map[string]*worktest.Server
	ended   chan types.NamespacedName
	stop    context.CancelFunc
	// away is true if the facts do not count, whatever they say.
	away atomic.Bool
}

// Sites implements scope.Facts.
func (pl *bench) Sites(namespace, group string) (scope.GroupFacts, bool) {
	g, known := pl.facts.Sites(namespace, group)
	return g, known && !pl.away.Load()
}

func rotating(t *testing.T) (*bench, rotator) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	pl := &bench{
		work: work.New(), facts: &scopetest.Facts{}, said: &scopetest.Events{}, ended: make(chan types.NamespacedName, 100), stop: stop,
		servers: map[string]*worktest.Server{"10.0.0.0:33062": {}, "10.0.0.1:33062": {}},
	}
	pl.facts.Open("a")
	pl.facts.Set("a", scope.SiteFacts{MysqlUp: true, Writable: true, AdminAddr: "10.0.0.0:33062"})
	pl.facts.Set("b", scope.SiteFacts{
		MysqlUp: true, AdminAddr: "10.0.0.1:33062", Following: true, PodUID: "pod-b", Keyring: &wire.KeyringReport{},
	})
	reach := work.Reach{Facts: pl, Access: worktest.Access{}, Dial: func(target mysql.Target) (work.Recipient, error) {
		s := pl.servers[target.Addr]
		s.With(func(s *worktest.Server) { s.Opened++ })
		return s, nil
	}}
	runner := &work.Runner{}
	go func() { _ = runner.Start(ctx) }()
	synctest.Wait()
	done := func(key types.NamespacedName) { pl.ended <- key }
	return pl, rotator{reach: reach, work: pl.work, runner: runner, recorder: events.NewRecorder(pl.said), done: done}
}

// end stops what runs, and checks that no connection is left.
func (pl *bench) end(t *testing.T) {
	t.Helper()
	pl.stop()
	synctest.Wait()
	for addr, s := range pl.servers {
		if s.Opened != 0 {
			t.Errorf("%d connections to %s are left open", s.Opened, addr)
		}
	}
}

func (pl *bench) fact(site string, change func(*scope.SiteFacts)) { pl.facts.Change(site, change) }

func (pl *bench) busy(site string) bool {
	_, busy := pl.work.Busy(scopetest.Key.Namespace, scopetest.Key.Name, site)
	return busy
}

func TestRotationRunsInAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		key := scope.SiteKey{Group: scopetest.Key, Site: "b"}
		b := pl.servers["10.0.0.1:33062"]
		b.OnRotate = func() error {
			w := pl.work.Windows(scopetest.Key.Namespace, scopetest.Key.Name)
			if len(w) != 1 || w[0].Purpose != wire.WindowRotation || w[0].Site != "b" || !pl.busy("b") {
				t.Errorf("windows %+v, busy %v", w, pl.busy("b"))
			}
			return nil
		}
		counted := rotationsCounted()
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		if diff := cmp.Diff([]string{"begin window", "rotate", "end window"}, b.Calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		wantOutcomes(t, counted, map[string]float64{RotationCompleted: 1})
		if j := pl.work.Rotation(key, "pod-b"); !j.Done || j.Running || pl.busy("b") || len(pl.work.Windows(scopetest.Key.Namespace, scopetest.Key.Name)) != 0 {
			t.Errorf("job %+v, busy %v", j, pl.busy("b"))
		}
		r.begin(scopetest.Group(), "b")
		synctest.Wait()
		if slices.Contains(b.Calls[3:], "rotate") {
			t.Error("rotated again before status tells of it")
		}
		pl.work.EndRotation(key)
		if j := pl.work.Rotation(key, "pod-b"); j.Done {
			t.Error("not forgotten")
		}
	})
}

// unsuited are facts that forbid a rotation on b.
var unsuited = map[string]func(*bench){
	"became active":    func(pl *bench) { pl.facts.Open("b") },
	"active site shut": func(pl *bench) { pl.facts.Closed("a") },
	"accepts writes":   func(pl *bench) { pl.fact("b", func(f *scope.SiteFacts) { f.Writable = true }) },
	"sealed meanwhile": func(pl *bench) {
		pl.fact("b", func(f *scope.SiteFacts) { f.Keyring = &wire.KeyringReport{Sealed: true} })
	},
	"no longer follows":      func(pl *bench) { pl.fact("b", func(f *scope.SiteFacts) { f.Following = false }) },
	"MySQL does not answer":  func(pl *bench) { pl.fact("b", func(f *scope.SiteFacts) { f.MysqlUp = false }) },
	"diverged":               func(pl *bench) { pl.fact("b", func(f *scope.SiteFacts) { f.Diverged = true }) },
	"is cloned":              func(pl *bench) { pl.fact("b", func(f *scope.SiteFacts) { f.Cloning = true }) },
	"nobody knows where":     func(pl *bench) { pl.fact("b", func(f *scope.SiteFacts) { f.AdminAddr = "" }) },
	"its sidecar is silent":  func(pl *bench) { pl.fact("b", func(f *scope.SiteFacts) { f.Keyring = nil }) },
	"the facts do not count": func(pl *bench) { pl.away.Store(true) },
}

// I20: looked at again right before the keys are rotated.
func TestI20RotationStopsWhenTheFactsChange(t *testing.T) {
	tests := maps.Clone(unsuited)
	tests["another pod"] = func(pl *bench) { pl.fact("b", func(f *scope.SiteFacts) { f.PodUID = "other" }) }
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl, r := rotating(t)
				defer pl.end(t)
				r.begin(scopetest.Group(), "b")
				time.Sleep(work.WindowMargin / 2)
				change(pl)
				<-pl.ended
				if calls := pl.servers["10.0.0.1:33062"].Calls; len(calls) != 0 {
					t.Errorf("calls %v", calls)
				}
				if j := pl.work.Rotation(scope.SiteKey{Group: scopetest.Key, Site: "b"}, "pod-b"); j.Done || j.Trouble == "" {
					t.Errorf("job %+v", j)
				}
			})
		})
	}
}

// I20: where the keys must not be rotated no window is announced either: the sidecar does not fence one that it knows of.
func TestI20NoWindowIsAnnouncedInVain(t *testing.T) {
	for name, change := range unsuited {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl, r := rotating(t)
				defer pl.end(t)
				change(pl)
				began := time.Now()
				r.begin(scopetest.Group(), "b")
				<-pl.ended
				if took := time.Since(began); took != 0 || len(pl.servers["10.0.0.1:33062"].Calls) != 0 {
					t.Errorf("I20: announced for %s; calls %v", took, pl.servers["10.0.0.1:33062"].Calls)
				}
			})
		})
	}
}

// withoutKeys is a server whose keys cannot be rotated.
type withoutKeys struct{ work.Recipient }

// withoutWindow is a server on which no window can be opened.
type withoutWindow struct{ *worktest.Server }

func (withoutWindow) BeginWindow(context.Context) error { return errAway }

// A server that cannot be reached, or that takes part in no rotation, is told of, and nothing is done there.
func TestNothingIsRotatedWhereItCannotBe(t *testing.T) {
	for name, tt := range map[string]struct {
		dial func(*worktest.Server) (work.Recipient, error)
		want error
	}{
		"out of reach": {func(*worktest.Server) (work.Recipient, error) { return nil, errAway }, errAway},
		"no keyring":   {func(s *worktest.Server) (work.Recipient, error) { return withoutKeys{s}, nil }, errNoRotation},
		"no window":    {func(s *worktest.Server) (work.Recipient, error) { return withoutWindow{s}, nil }, errAway},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl, r := rotating(t)
				defer pl.stop()
				b := pl.servers["10.0.0.1:33062"]
				r.reach.Dial = func(mysql.Target) (work.Recipient, error) { return tt.dial(b) }
				counted := rotationsCounted()
				r.begin(scopetest.Group(), "b")
				<-pl.ended
				if j := pl.work.Rotation(scope.SiteKey{Group: scopetest.Key, Site: "b"}, "pod-b"); j.Done || j.Trouble != tt.want.Error() || len(b.Calls) != 0 {
					t.Errorf("job %+v, calls %v", j, b.Calls)
				}
				wantOutcomes(t, counted, map[string]float64{RotationFailed: 1})
			})
		})
	}
}

// I20: an operator that no longer leads does not know the role any more.
func TestI20RotationEndsWithLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		r.begin(scopetest.Group(), "b")
		time.Sleep(work.WindowMargin / 2)
		pl.stop()
		<-pl.ended
		if calls := pl.servers["10.0.0.1:33062"].Calls; len(calls) != 0 {
			t.Errorf("I20: calls %v", calls)
		}
	})
}

func TestFailedRotationClosesTheWindowAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		b.OnRotate = func() error { return errors.New("no") }
		counted := rotationsCounted()
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		wantOutcomes(t, counted, map[string]float64{RotationFailed: 1})
		if said := pl.said.Of(v1alpha1.ReasonKeyringRotationFailed); len(said) != 1 || !strings.Contains(said[0], "of site b did not succeed and is tried again: no") {
			t.Errorf("said %v", pl.said.List)
		}
		if diff := cmp.Diff([]string{"begin window", "rotate", "end window"}, b.Calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		r.begin(scopetest.Group(), "b")
		synctest.Wait()
		if len(b.Calls) != 3 {
			t.Error("tried again at once")
		}
		time.Sleep(time.Minute)
		b.OnRotate = nil
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		if j := pl.work.Rotation(scope.SiteKey{Group: scopetest.Key, Site: "b"}, "pod-b"); !j.Done {
			t.Errorf("job %+v", j)
		}
		wantOutcomes(t, counted, map[string]float64{RotationFailed: 1, RotationCompleted: 1})
	})
}

// Each rotation of InnoDB's key leaves one more in the keyring: once it was rotated only the rest is tried again, in that pod.
func TestOnlyTheRestOfARotationIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		try := func(comes error, want ...string) {
			t.Helper()
			b.OnRotate, b.Calls = func() error { return comes }, nil
			r.begin(scopetest.Group(), "b")
			<-pl.ended
			time.Sleep(time.Hour)
			if diff := cmp.Diff(append(append([]string{"begin window"}, want...), "end window"), b.Calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		}
		try(errors.New("no answer"), "rotate")
		try(fmt.Errorf("rotate: %w", mysql.ErrHalfRotated), "rotate")
		try(errors.New("no answer"), "rotate the rest")
		try(fmt.Errorf("rotate: %w: %w", mysql.ErrHalfRotated, mysql.ErrLocked), "rotate the rest")
		// Another pod has none of the new keys.
		pl.fact("b", func(f *scope.SiteFacts) { f.PodUID = "the next one" })
		try(fmt.Errorf("rotate: %w", mysql.ErrHalfRotated), "rotate")
		try(nil, "rotate the rest")
		pl.work.EndRotation(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		try(nil, "rotate")
	})
}

// A backup or DDL that stands in the way is no failure.
func TestLockedRotationIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		pl.servers["10.0.0.1:33062"].OnRotate = func() error { return fmt.Errorf("rotate: %w", mysql.ErrLocked) }
		counted := rotationsCounted()
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		if j := pl.work.Rotation(scope.SiteKey{Group: scopetest.Key, Site: "b"}, "pod-b"); j.Done || j.Trouble == "" || pl.said.Count(v1alpha1.ReasonKeyringRotationFailed) != 0 {
			t.Errorf("job %+v, events %v", j, pl.said.List)
		}
		wantOutcomes(t, counted, map[string]float64{})
	})
}

// What was rotated in a pod that is gone went with it: the next pod is not taken for one with new keys.
func TestRotationOfAnotherPodIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		key := scope.SiteKey{Group: scopetest.Key, Site: "b"}
		if j := pl.work.Rotation(key, "the next one"); j.Done {
			t.Errorf("job %+v", j)
		}
		if j := pl.work.Rotation(key, "pod-b"); j.Done {
			t.Errorf("the first pod does not come back: %+v", j)
		}
	})
}

// rotationsCounted gives the outcomes of rotations that were counted since it was called; those that were not are left out.
func rotationsCounted() func() map[string]float64 {
	all := func() map[string]float64 {
		out := map[string]float64{}
		for _, outcome := range []string{RotationCompleted, RotationFailed, RotationRefused} {
			out[outcome] = testutil.ToFloat64(Rotations.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, outcome))
		}
		return out
	}
	before := all()
	return func() map[string]float64 {
		out := map[string]float64{}
		for outcome, n := range all() {
			if n != before[outcome] {
				out[outcome] = n - before[outcome]
			}
		}
		return out
	}
}

// wantOutcomes compares the outcomes that were counted.
func wantOutcomes(t *testing.T, counted func() map[string]float64, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, counted()); diff != "" {
		t.Errorf("rotations in the metrics (-want +got):\n%s", diff)
	}
}
