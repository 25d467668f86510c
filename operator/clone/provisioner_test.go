// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// plant is a provisioner over fake servers at 10.0.0.<n>; the site of index 0, "a", is active and open.
type plant struct {
	// mu guards servers, where a test adds one while the provisioner works.
	mu      sync.Mutex
	p       *provisioner
	work    *work.Register
	runner  *work.Runner
	facts   *scopetest.Facts
	said    *scopetest.Events
	servers map[string]*worktest.Server
	ended   chan types.NamespacedName
	// shown is what status was to tell of the clone into b, one after the other.
	shown []v1alpha1.CloneProgress
	stop  context.CancelFunc
}

func newPlant(t *testing.T, active string, sites ...string) *plant {
	t.Helper()
	pl := &plant{
		work: work.New(), runner: &work.Runner{}, facts: &scopetest.Facts{}, said: &scopetest.Events{}, servers: map[string]*worktest.Server{},
		ended: make(chan types.NamespacedName, 100),
	}
	pl.servers["10.0.0.0:33062"] = &worktest.Server{Answers: open(active)}
	pl.facts.Open("a")
	pl.facts.Set("a", scope.SiteFacts{MysqlUp: true, Writable: true, AdminAddr: "10.0.0.0:33062"})
	for i, executed := range sites {
		addr := fmt.Sprintf("10.0.0.%d:33062", i+1)
		pl.servers[addr] = &worktest.Server{Answers: fenced(executed), OnClone: worktest.Completes(set(active), time.Minute, nil)}
		pl.facts.Set(string(rune('b'+i)), scope.SiteFacts{MysqlUp: true, AdminAddr: addr})
	}
	reach := work.Reach{
		Facts: pl.facts, Access: worktest.Access{},
		Dial: func(target mysql.Target) (work.Recipient, error) {
			pl.mu.Lock()
			s := pl.servers[target.Addr]
			pl.mu.Unlock()
			s.With(func(s *worktest.Server) { s.Opened++ })
			return s, nil
		},
	}
	pl.p = newProvisioner(&scope.Base{Recorder: events.NewRecorder(pl.said)}, Options{Work: pl.work, Runner: pl.runner, Reach: reach})
	pl.p.done = func(key types.NamespacedName) { pl.ended <- key }
	pl.p.news = func(key types.NamespacedName) {
		if p := pl.work.Progress(scope.SiteKey{Group: key, Site: "b"}); p != nil {
			pl.shown = append(pl.shown, *p)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	pl.stop = stop
	go func() { _ = pl.runner.Start(ctx) }()
	synctest.Wait()
	return pl
}

// end stops the provisioner and checks that no connection is left.
func (pl *plant) end(t *testing.T) {
	t.Helper()
	pl.stop()
	synctest.Wait()
	for addr, s := range pl.servers {
		if s.Opened != 0 {
			t.Errorf("%d connections to %s are left open", s.Opened, addr)
		}
	}
}

func (pl *plant) result(t *testing.T, site string) work.Outcome {
	t.Helper()
	<-pl.ended
	o, ok := pl.work.Result(scope.SiteKey{Group: scopetest.Key, Site: site})
	if !ok {
		t.Fatalf("no outcome for %s", site)
	}
	return o
}

func (pl *plant) busy(site string) bool {
	_, busy := pl.work.Busy(scopetest.Key.Namespace, scopetest.Key.Name, site)
	return busy
}

func (pl *plant) fact(site string, change func(*scope.SiteFacts)) {
	g, _ := pl.facts.Sites("", "")
	f := g.Sites[site]
	change(&f)
	pl.facts.Set(site, f)
}

const history = uuidA + ":1-100"

func TestProvisionNewSite(t *testing.T) {
	for name, result := range map[string]error{
		"answered": nil, "connection lost": fmt.Errorf("x: %w", mysql.ErrCloneOutcomeUnknown),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPlant(t, history, "")
				defer pl.end(t)
				b := pl.servers["10.0.0.1:33062"]
				b.OnClone = worktest.Completes(set(history), time.Hour, result)
				pl.p.begin(scopetest.Group(), "b", order{})
				time.Sleep(10 * time.Minute)
				if !pl.busy("b") {
					t.Error("the site is not held while it is cloned")
				}
				if len(pl.work.Windows(scopetest.Key.Namespace, scopetest.Key.Name)) != 0 {
					t.Error("an empty site needs no window")
				}
				o := pl.result(t, "b")
				if o.Verdict != work.VerdictAdopt || !o.Cloned {
					t.Errorf("outcome %+v", o)
				}
				if !pl.busy("b") {
					t.Error("the site was let go before its mark is persisted")
				}
				pl.work.Release(scope.SiteKey{Group: scopetest.Key, Site: "b"})
				if pl.busy("b") {
					t.Error("the site is held for ever")
				}
				if got := strings.Join(b.Calls, ", "); got != "clone from 10.0.0.0" {
					t.Errorf("calls: %s", got)
				}
				if pl.said.Count(v1alpha1.ReasonSiteCloning) != 1 || pl.said.Count(v1alpha1.ReasonSiteCloned) != 1 {
					t.Errorf("events %v", pl.said.List)
				}
			})
		})
	}
}

func TestProvisionAdoptsWithoutClone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, uuidA+":1-40")
		defer pl.end(t)
		pl.p.begin(scopetest.Group(), "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictAdopt || o.Cloned {
			t.Errorf("outcome %+v", o)
		}
		if len(pl.servers["10.0.0.1:33062"].Calls) != 0 || pl.said.Count(v1alpha1.ReasonSiteCloning) != 0 {
			t.Error("it was cloned although it has the data")
		}
	})
}

func TestProvisionRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, uuidB+":1-3")
		defer pl.end(t)
		pl.p.begin(scopetest.Group(), "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictRefuse || !strings.Contains(o.Message, "3 transactions") {
			t.Errorf("outcome %+v", o)
		}
		if len(pl.servers["10.0.0.1:33062"].Calls) != 0 || pl.busy("b") {
			t.Error("it was touched or held")
		}
	})
}

// I14: rows outside InnoDB would be gone without a word. Only a person gives them up, and what is not known stops nothing.
func TestProvisionKeepsRowsThatNoCloneBringsI14(t *testing.T) {
	for name, tc := range map[string]struct {
		found *wire.EngineReport
		order order
		want  work.Verdict
	}{
		"rows":            {&wire.EngineReport{Tables: 2, WithRows: 1}, order{}, work.VerdictRefuse},
		"rows, ordered":   {&wire.EngineReport{Tables: 2, WithRows: 1}, order{value: "b"}, work.VerdictRefuse},
		"rows, policy":    {&wire.EngineReport{Tables: 2, WithRows: 1}, order{value: orderOfPolicy}, work.VerdictRefuse},
		"rows, confirmed": {&wire.EngineReport{Tables: 2, WithRows: 1}, order{value: "b:confirm"}, work.VerdictAdopt},
		"no rows":         {&wire.EngineReport{Tables: 2}, order{}, work.VerdictAdopt},
		"not known":       {nil, order{}, work.VerdictAdopt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPlant(t, history, "")
				defer pl.end(t)
				g, _ := pl.facts.Sites("", "")
				a := g.Sites["a"]
				a.Engines = tc.found
				pl.facts.Set("a", a)
				pl.facts.Set("c", scope.SiteFacts{MysqlUp: true, Following: true, Lasts: true})
				pl.p.begin(scopetest.Group(), "b", tc.order)
				o := pl.result(t, "b")
				if o.Verdict != tc.want || (o.Verdict == work.VerdictRefuse) == (pl.said.Count(v1alpha1.ReasonSiteCloning) > 0) {
					t.Errorf("outcome %+v", o)
				}
				if o.Verdict == work.VerdictRefuse && !strings.Contains(o.Message, "ENGINE=InnoDB") {
					t.Errorf("no way out: %s", o.Message)
				}
			})
		})
	}
}

// A site with databases is cloned inside a window, which its sidecar has heard of before it opens.
func TestProvisionInWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, uuidA+":1-40")
		defer pl.end(t)
		b, a := pl.servers["10.0.0.1:33062"], pl.servers["10.0.0.0:33062"]
		a.Answers.Purged = set(uuidA + ":1-50")
		b.Answers.HasDatabases = true
		inner := b.OnClone
		b.OnClone = func(s *worktest.Server) error {
			w := pl.work.Windows(scopetest.Key.Namespace, scopetest.Key.Name)
			if len(w) != 1 || w[0].Site != "b" || w[0].Purpose != wire.WindowClone || !w[0].Deadline.After(time.Now()) {
				t.Errorf("windows %+v", w)
			}
			return inner(s)
		}
		group := scopetest.Group()
		group.Spec.Failover.PollInterval.Duration, group.Spec.Sidecar.PeerCheckInterval.Duration = 2*time.Second, 2*time.Second
		began := time.Now()
		pl.p.begin(group, "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictAdopt {
			t.Errorf("outcome %+v", o)
		}
		if got := strings.Join(b.Calls, ", "); got != "begin window, stop replication, drop replication, clone from 10.0.0.0" {
			t.Errorf("calls: %s", got)
		}
		if took := time.Since(began); took < time.Minute+4*time.Second {
			t.Errorf("took %s: the sidecar had no time to hear of the window", took)
		}
		if len(pl.work.Windows(scopetest.Key.Namespace, scopetest.Key.Name)) != 0 {
			t.Error("the window is still open")
		}
	})
}

func TestCloneFails(t *testing.T) {
	tests := map[string]struct {
		reason string
		clone  func(*worktest.Server) error
	}{
		"refused": {"the server answered with an error", func(*worktest.Server) error { return errors.New("error 3862") }},
		"ended as failed": {"clone_status knows", func(s *worktest.Server) error {
			s.With(func(s *worktest.Server) {
				s.Last = mysql.CloneStatus{State: "Failed", ErrorNo: 3862, Message: "no space"}
			})
			return mysql.ErrCloneOutcomeUnknown
		}},
		"never began": {"an old row says Completed, but the data is old too", func(s *worktest.Server) error {
			s.With(func(s *worktest.Server) { s.Last = mysql.CloneStatus{State: "Completed"} })
			return mysql.ErrCloneOutcomeUnknown
		}},
		"never came back": {"the wait has an end", func(s *worktest.Server) error {
			s.With(func(s *worktest.Server) { s.Down = true })
			return nil
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPlant(t, history, "")
				defer pl.end(t)
				pl.servers["10.0.0.1:33062"].OnClone = tt.clone
				pl.p.begin(scopetest.Group(), "b", order{})
				if o := pl.result(t, "b"); o.Verdict == work.VerdictAdopt || !o.Failed {
					t.Errorf("%s: outcome %+v", tt.reason, o)
				}
				if pl.busy("b") {
					t.Error("the site is held although nothing runs")
				}
				if pl.said.Count(v1alpha1.ReasonSiteCloneFailed) != 1 {
					t.Errorf("events %v", pl.said.List)
				}
				pl.work.Release(scope.SiteKey{Group: scopetest.Key, Site: "b"})
				pl.p.begin(scopetest.Group(), "b", order{})
				synctest.Wait()
				if len(pl.ended) != 0 || pl.busy("b") {
					t.Error("tried again at once")
				}
			})
		})
	}
}

// A server that stands still in a clone answers neither the statement nor anybody else: others get their turn after a while.
func TestCloneOfAServerThatStandsStillIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		pl.servers["10.0.0.1:33062"].OnClone = func(s *worktest.Server) error {
			s.With(func(s *worktest.Server) { s.Last, s.Down = mysql.CloneStatus{State: "In Progress"}, true })
			time.Sleep(2 * returnTimeout)
			return mysql.ErrCloneOutcomeUnknown
		}
		began := time.Now()
		pl.p.begin(scopetest.Group(), "b", order{})
		if o := pl.result(t, "b"); o.Verdict == work.VerdictAdopt || !o.Failed || time.Since(began) > returnTimeout+time.Minute {
			t.Errorf("outcome %+v after %s", o, time.Since(began))
		}
		if pl.busy("b") {
			t.Error("the site is held although nothing runs")
		}
		time.Sleep(2 * returnTimeout) // the statement of the fake server
	})
}

// A donor serves one clone at a time.
func TestClonesOfAGroupTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "", "")
		defer pl.end(t)
		var running, most int
		var mu sync.Mutex
		for _, addr := range []string{"10.0.0.1:33062", "10.0.0.2:33062"} {
			inner := worktest.Completes(set(history), time.Minute, nil)
			pl.servers[addr].OnClone = func(s *worktest.Server) error {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				defer func() { mu.Lock(); running--; mu.Unlock() }()
				time.Sleep(time.Minute)
				return inner(s)
			}
		}
		pl.p.begin(scopetest.Group(), "b", order{})
		pl.p.begin(scopetest.Group(), "c", order{})
		pl.p.begin(scopetest.Group(), "c", order{})
		<-pl.ended
		<-pl.ended
		for _, site := range []string{"b", "c"} {
			if o, _ := pl.work.Result(scope.SiteKey{Group: scopetest.Key, Site: site}); o.Verdict != work.VerdictAdopt {
				t.Errorf("%s: %+v", site, o)
			}
		}
		if most != 1 {
			t.Errorf("%d clones at once", most)
		}
	})
}

func TestForgottenGroupIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		pl.servers["10.0.0.1:33062"].OnClone = worktest.Completes(set(history), 24*time.Hour, mysql.ErrCloneOutcomeUnknown)
		pl.p.begin(scopetest.Group(), "b", order{})
		time.Sleep(time.Minute)
		pl.work.Forget(scopetest.Key)
		<-pl.ended
		if pl.busy("b") {
			t.Error("a group that is gone holds a site")
		}
		// The server of the test ends its own clone before the bubble may end.
		time.Sleep(25 * time.Hour)
	})
}

// A site that was removed while it was cloned answers no more. The donor is free for the next site at once, and nobody is told of a new try.
func TestARemovedSiteLetsTheDonorGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "", "")
		defer pl.end(t)
		pl.servers["10.0.0.1:33062"].OnClone = func(s *worktest.Server) error {
			s.With(func(s *worktest.Server) { s.Last, s.Down = mysql.CloneStatus{State: "In Progress"}, true })
			return mysql.ErrCloneOutcomeUnknown
		}
		pl.p.begin(scopetest.Group(), "b", order{})
		time.Sleep(30 * time.Second)
		pl.p.begin(scopetest.Group(), "c", order{})
		time.Sleep(time.Minute)
		if !pl.busy("b") || pl.busy("c") {
			t.Fatal("two clones at once")
		}
		began := time.Now()
		pl.work.ForgetSite(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		<-pl.ended
		if o := pl.result(t, "c"); o.Verdict != work.VerdictAdopt || time.Since(began) > 5*time.Minute {
			t.Errorf("outcome %+v after %s", o, time.Since(began))
		}
		if pl.busy("b") || pl.said.Count(v1alpha1.ReasonSiteCloneFailed) > 0 {
			t.Errorf("b is held: %t; events %v", pl.busy("b"), pl.said.List)
		}
	})
}

// A failover while the clone runs: it is cancelled, and starts again from the site that is active then, after a while.
func TestCloneIsCancelledWhenTheRoleMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "", uuidA+":1-90")
		defer pl.end(t)
		b, c := pl.servers["10.0.0.1:33062"], pl.servers["10.0.0.2:33062"]
		b.OnClone = worktest.Completes(set(history), time.Hour, nil)
		pl.p.begin(scopetest.Group(), "b", order{})
		time.Sleep(30 * time.Second)
		pl.facts.Open("c")
		c.With(func(s *worktest.Server) { s.Answers = open(uuidA + ":1-90," + uuidB + ":1") })
		began := time.Now()
		o := pl.result(t, "b")
		if o.Verdict != work.VerdictWait || !o.Failed || !strings.Contains(o.Message, "the active site is c now") || time.Since(began) > 5*time.Second {
			t.Errorf("outcome %+v after %s", o, time.Since(began))
		}
		pl.work.Release(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		if pl.p.begin(scopetest.Group(), "b", order{}); pl.busy("b") {
			t.Error("it began again at once")
		}
		time.Sleep(time.Minute)
		b.With(func(s *worktest.Server) {
			s.OnClone = worktest.Completes(set(uuidA+":1-90,"+uuidB+":1"), time.Minute, nil)
		})
		pl.p.begin(scopetest.Group(), "b", order{})
		if o = pl.result(t, "b"); o.Verdict != work.VerdictAdopt {
			t.Errorf("the second time: %+v", o)
		}
		if got := strings.Join(b.Calls, ", "); got != "clone from 10.0.0.0, cancel, clone from 10.0.0.2" {
			t.Errorf("calls: %s", got)
		}
		time.Sleep(2 * time.Hour) // the cancelled clone of the fake server
	})
}

// A failover while the clone runs, and mysqld hangs over the KILL: the pod in which it was asked is ended, and no other.
func TestCloneThatHangsIsEndedWithItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "", uuidA+":1-90")
		defer pl.end(t)
		b, c := pl.servers["10.0.0.1:33062"], pl.servers["10.0.0.2:33062"]
		pl.facts.Set("b", scope.SiteFacts{MysqlUp: true, AdminAddr: "10.0.0.1:33062", PodName: "pod-of-b", PodUID: "uid-of-b"})
		b.Hangs, b.OnClone = true, worktest.Completes(set(history), time.Hour, nil)
		var ended []string
		pl.p.endPod = func(_ context.Context, namespace, name string, uid types.UID) error {
			ended = append(ended, namespace+"/"+name+" "+string(uid))
			b.With(func(s *worktest.Server) {
				s.Hangs, s.Cancelled = false, true
				s.Last = mysql.CloneStatus{State: "Failed", ErrorNo: 1158, Message: "network"}
			})
			return nil
		}
		pl.p.begin(scopetest.Group(), "b", order{})
		time.Sleep(30 * time.Second)
		pl.facts.Open("c")
		c.With(func(s *worktest.Server) { s.Answers = open(uuidA + ":1-90," + uuidB + ":1") })
		if o := pl.result(t, "b"); o.Verdict != work.VerdictWait || !o.Failed || !strings.Contains(o.Message, "the active site is c now") {
			t.Errorf("outcome %+v", o)
		}
		if want := []string{scopetest.Key.Namespace + "/pod-of-b uid-of-b"}; !slices.Equal(ended, want) {
			t.Errorf("ended %q, want %q", ended, want)
		}
		time.Sleep(2 * time.Hour) // the cancelled clone of the fake server
	})
}

// The active site is not seen open for a moment again and again; only when that lasts, the clone is given up.
func TestCloneOutlivesABlinkOfTheDonor(t *testing.T) {
	for name, closed := range map[string]time.Duration{"blink": donorPatience - 3*time.Second, "dead": donorPatience + 5*time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPlant(t, history, "")
				defer pl.end(t)
				pl.servers["10.0.0.1:33062"].OnClone = worktest.Completes(set(history), 5*time.Minute, nil)
				pl.p.begin(scopetest.Group(), "b", order{})
				for range 2 {
					time.Sleep(time.Minute)
					pl.facts.Closed("a")
					time.Sleep(closed)
					pl.facts.Open("a")
				}
				o := pl.result(t, "b")
				if cancelled := o.Verdict != work.VerdictAdopt; cancelled != (name == "dead") {
					t.Errorf("outcome %+v", o)
				}
				time.Sleep(10 * time.Minute)
			})
		})
	}
}

// What the active site lacks after the role has moved is not thrown away with a clone that had ended.
func TestActiveSiteChangesAfterClone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "", uuidA+":1-90")
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		inner := b.OnClone
		b.OnClone = func(s *worktest.Server) error {
			go func() {
				time.Sleep(time.Minute + time.Second) // it restarts
				pl.facts.Open("c")
				pl.servers["10.0.0.2:33062"].With(func(s *worktest.Server) { s.Answers = open(uuidA + ":1-90," + uuidB + ":1") })
			}()
			return inner(s)
		}
		pl.p.begin(scopetest.Group(), "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictRefuse || !o.Cloned {
			t.Errorf("outcome %+v", o)
		}
	})
}

// An operator that was restarted goes on where the one before was.
func TestRunningCloneIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		_ = worktest.Completes(set(history), time.Minute, nil)(b)
		pl.p.begin(scopetest.Group(), "b", order{value: "b", begun: true})
		time.Sleep(5 * time.Second)
		if !pl.busy("b") {
			t.Error("the site is not held")
		}
		if o := pl.result(t, "b"); o.Verdict != work.VerdictAdopt || len(b.Calls) != 0 || o.Order != "b" {
			t.Errorf("outcome %+v, calls %v", o, b.Calls)
		}
	})
}

// What the active site commits after the clone has ended is not missing from it: the site fetches it when it follows.
func TestAResumedCloneIsNotComparedWithLaterTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, uuidA+":1-120", "")
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		_ = worktest.Completes(set(history), time.Minute, nil)(b)
		pl.p.begin(scopetest.Group(), "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictAdopt || pl.said.Count(v1alpha1.ReasonSiteCloneFailed) > 0 {
			t.Errorf("outcome %+v, events %v", o, pl.said.List)
		}
	})
}

// What a clone brought to a volume whose claim is being deleted would be gone with the pod. A site that has the data is taken as it is: until
// its pod ends it may be the only other one.
func TestNothingIsClonedToAVolumeThatGoes(t *testing.T) {
	for name, tt := range map[string]struct {
		goes     bool
		executed string
		order    order
		want     work.Verdict
		cloned   bool
	}{
		"it stays, and is empty":    {false, "", order{}, work.VerdictAdopt, true},
		"it goes, and is empty":     {true, "", order{}, work.VerdictWait, false},
		"it goes, and is ordered":   {true, uuidA + ":1-40", order{value: "b:confirm"}, work.VerdictLapse, false},
		"it goes, and has the data": {true, uuidA + ":1-40", order{}, work.VerdictAdopt, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			pl := newPlant(t, history, tt.executed)
			defer pl.end(t)
			pl.fact("b", func(f *scope.SiteFacts) { f.VolumeGoes = tt.goes })
			pl.p.begin(scopetest.Group(), "b", tt.order)
			o := pl.result(t, "b")
			if cloned := len(pl.servers["10.0.0.1:33062"].Calls) > 0; o.Verdict != tt.want || cloned != tt.cloned {
				t.Errorf("%s: outcome %+v, cloned %t", name, o, cloned)
			}
			if told := strings.Contains(o.Message, "kubectl delete pods"); told != (tt.goes && tt.want != work.VerdictAdopt) {
				t.Errorf("%s: %s", name, o.Message)
			}
		})
	}
}

// A clone that an operator began from a site that is no longer active is of no use to the next one.
func TestResumedCloneFromAnOldActiveSiteIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		_ = worktest.Completes(set(history), time.Hour, nil)(b)
		b.With(func(s *worktest.Server) { s.Last.Source = "mysql-orders-c:3306" })
		pl.p.begin(scopetest.Group(), "b", order{})
		if o := pl.result(t, "b"); !o.Failed || strings.Join(b.Calls, ", ") != "cancel" {
			t.Errorf("outcome %+v, calls %v", o, b.Calls)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestOrderedClone(t *testing.T) {
	tests := map[string]struct {
		order    order
		executed string
		diverged bool
		want     work.Verdict
		calls    string
	}{
		"whole":                   {order{value: "b"}, uuidA + ":1-100", false, work.VerdictAdopt, "begin window, stop replication, drop replication, clone from 10.0.0.0"},
		"diverged, confirmed":     {order{value: "b:confirm"}, uuidB + ":1-3", true, work.VerdictAdopt, "begin window, stop replication, drop replication, clone from 10.0.0.0"},
		"diverged, policy":        {order{value: orderOfPolicy}, uuidB + ":1-3", true, work.VerdictAdopt, "begin window, stop replication, drop replication, clone from 10.0.0.0"},
		"diverged, not confirmed": {order{value: "b"}, uuidB + ":1-3", false, work.VerdictRefuse, ""},
		"found diverged":          {order{value: "b"}, uuidA + ":1-100", true, work.VerdictWait, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPlant(t, history, tt.executed)
				defer pl.end(t)
				b := pl.servers["10.0.0.1:33062"]
				b.Answers.HasDatabases, b.Answers.Channels = true, 1
				pl.facts.Set("b", scope.SiteFacts{MysqlUp: true, AdminAddr: "10.0.0.1:33062", Diverged: tt.diverged})
				pl.facts.Set("c", scope.SiteFacts{MysqlUp: true, Following: true, Lasts: true})
				pl.p.begin(scopetest.Group(), "b", tt.order)
				if o := pl.result(t, "b"); o.Verdict != tt.want || o.Order != tt.order.value {
					t.Errorf("outcome %+v", o)
				}
				if got := strings.Join(b.Calls, ", "); got != tt.calls {
					t.Errorf("calls: %s", got)
				}
			})
		})
	}
}

// I14: a clone of which nobody knows whether it began is not taken for one that was carried out because the one before it was.
func TestACloneThatDidNotBeginI14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, history)
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		b.Answers.HasDatabases, b.Last = true, mysql.CloneStatus{State: cloneCompleted, Began: "2026-11-01 10:00:00"}
		b.OnClone = func(*worktest.Server) error { return fmt.Errorf("x: %w", mysql.ErrCloneOutcomeUnknown) }
		pl.p.begin(scopetest.Group(), "b", order{value: "b:confirm"})
		if o := pl.result(t, "b"); !o.Failed || o.Cloned || !strings.Contains(o.Message, "did not begin") {
			t.Errorf("I14: outcome %+v", o)
		}
	})
}

func TestNothingBeginsBeforeLeading(t *testing.T) {
	p := newProvisioner(&scope.Base{}, Options{Work: work.New(), Runner: &work.Runner{}})
	p.begin(scopetest.Group(), "b", order{})
	if p.work.Jobs() != 0 {
		t.Error("a job began before this process leads")
	}
}
