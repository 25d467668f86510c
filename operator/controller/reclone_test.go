// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

// orderWorld is a group that runs, whose jobs may begin and have nothing to do.
func orderWorld(t *testing.T) *world {
	t.Helper()
	w := volumeWorld(t)
	w.r.runner.Lead(context.Background())
	w.mayClone()
	w.r.Work.Forget(scopetest.Key)
	return w
}

// offersConfirmation: an answer names the confirmed order in its words just if its reason says that a confirmation overrides it.
func (w *world) offersConfirmation() {
	w.t.Helper()
	g := w.group()
	last := g.Status.LastRequest(v1alpha1.RequestRecloneSite)
	if offers := strings.Contains(last.Message, "order "+last.Target+":confirm"); offers != v1alpha1.IsConfirmable(last.Reason) {
		w.t.Errorf("%s says: %s", last.Reason, last.Message)
	}
}

// last is the last answer of a kind; empty if there is none.
func (w *world) last(kind v1alpha1.RequestKind) string {
	w.t.Helper()
	g := w.group()
	a := g.Status.LastRequest(kind)
	if a == nil {
		return ""
	}
	if a.ID == "" || a.AnsweredAt.IsZero() {
		w.t.Errorf("an answer without an id, or a time: %+v", a)
	}
	return fmt.Sprintf("%s: %s (%s): %s", a.Target, a.Outcome, a.Reason, a.Message)
}

func (w *world) order(name, value string) {
	w.t.Helper()
	g := w.group()
	metav1.SetMetaDataAnnotation(&g.ObjectMeta, name, value)
	w.must(w.c.Update(w.ctx, g))
}

// ordered has an order accepted.
func (w *world) ordered(site, value string) {
	w.t.Helper()
	w.order(v1alpha1.AnnotationRecloneSite, value)
	w.reconcile()
	if clone := w.site(site).Clone; clone == nil || clone.Order != value || w.provisioned(site) {
		w.t.Fatalf("the order %s was not accepted: %+v, last request %q", value, w.site(site), w.last(v1alpha1.RequestRecloneSite))
	}
}

func (w *world) fact(site string, change func(*scope.SiteFacts)) {
	g, _ := w.facts.Sites("", "")
	f := g.Sites[site]
	change(&f)
	w.facts.Set(site, f)
}

func (w *world) status(change func(*v1alpha1.MysqlFailoverGroupStatus)) {
	w.t.Helper()
	g := w.group()
	change(&g.Status)
	w.must(w.c.Status().Update(w.ctx, g))
}

func (w *world) diverge(site string) {
	w.fact(site, func(f *scope.SiteFacts) {
		f.Diverged, f.Following = true, false
		f.Errant = sets(uuidOfB + ":1-3")
		f.Executed = f.Executed.Union(f.Errant)
	})
}

// I15: an order is durable before anything is done, and answered when it is carried out.
func TestRecloneOrder(t *testing.T) {
	w := orderWorld(t)
	w.ordered("b", "b")
	if w.r.Work.Jobs() != 0 {
		t.Error("a clone began before the order was durable")
	}
	if w.group().Annotations[v1alpha1.AnnotationRecloneSite] == "" {
		t.Error("the order was answered before it was carried out")
	}
	w.reconcile()
	if w.r.Work.Jobs() != 1 || w.said.Count(v1alpha1.ReasonRecloneAccepted) != 1 {
		t.Errorf("%d jobs, events %v", w.r.Work.Jobs(), w.said.List)
	}
	w.r.runner.Wait()
	w.r.Work.Forget(scopetest.Key)
	w.ended("b", work.Outcome{Verdict: work.VerdictAdopt, Message: "its data is the group's", Cloned: true, Order: "b"})
	w.reconcile()
	g := w.group()
	if g.Annotations[v1alpha1.AnnotationRecloneSite] != "" || w.last(v1alpha1.RequestRecloneSite) != "b: Done (Completed): it holds the data of a" {
		t.Errorf("annotations %v", g.Annotations)
	}
	if !w.provisioned("b") || w.site("b").Clone != nil || w.said.Count(v1alpha1.ReasonRecloneDone) != 1 {
		t.Errorf("status %+v, events %v", w.site("b"), w.said.List)
	}
	if w.reconcile(); w.said.Count(v1alpha1.ReasonRecloneAccepted) != 1 || !w.provisioned("b") {
		t.Error("it was carried out twice")
	}
}

// A restart of the operator at any point leaves the order standing: in the annotation before it is accepted, in status
// until it is carried out.
func TestRecloneOrderOutlivesTheOperator(t *testing.T) {
	w := orderWorld(t)
	w.diverge("b")
	w.ordered("b", "b:confirm")
	// The answer was given, and the operator died before the mark.
	g := w.group()
	delete(g.Annotations, v1alpha1.AnnotationRecloneSite)
	w.must(w.c.Update(w.ctx, g))
	w.r.Work = work.New()
	w.r.encryption.Work = w.r.Work
	w.mayClone()
	w.reconcile()
	if w.r.Work.Jobs() != 1 || w.site("b").Clone == nil {
		t.Errorf("%d jobs, %+v", w.r.Work.Jobs(), w.site("b"))
	}
	w.r.runner.Wait()
}

// While the order cannot be answered, it is not done.
func TestRecloneIsAnsweredBeforeTheMark(t *testing.T) {
	w := orderWorld(t)
	w.ordered("b", "b")
	w.ended("b", work.Outcome{Verdict: work.VerdictAdopt, Message: "its data is the group's", Cloned: true, Order: "b"})
	w.fail["*v1alpha1.MysqlFailoverGroup"] = errors.New("no")
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil {
		t.Fatal("no error")
	}
	if w.provisioned("b") || !w.busy("b") {
		t.Error("the site was let go while its order stands")
	}
	clear(w.fail)
	w.reconcile()
	if !w.provisioned("b") || w.busy("b") || w.group().Annotations[v1alpha1.AnnotationRecloneSite] != "" {
		t.Errorf("after it: %+v", w.site("b"))
	}
}

// What came of work that knew nothing of the order does not answer it.
func TestRecloneIgnoresEarlierWork(t *testing.T) {
	w := orderWorld(t)
	w.ordered("b", "b")
	w.ended("b", work.Outcome{Verdict: work.VerdictAdopt, Message: "it holds the data"})
	w.reconcile()
	if w.provisioned("b") || w.group().Annotations[v1alpha1.AnnotationRecloneSite] == "" {
		t.Error("an order was answered by work that did not carry it out")
	}
	w.r.runner.Wait()
}

// I14: what would be thrown away, or leave no healthy copy, is refused.
func TestRecloneRefusals(t *testing.T) {
	lostLog := func(w *world) {
		w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.Failovers = []v1alpha1.FailoverRecord{{Epoch: 1, From: "b", To: "a"}}
		})
		w.r.base.Waits.Since(&scope.Scope{Key: scopetest.Key, Now: time.Now().Add(-2 * time.Minute)}, "settle", &v1alpha1.FailoverRecord{Epoch: 1})
	}
	tests := map[string]struct {
		value   string
		happens func(*world)
		// why is part of the refusal; empty if the order is accepted.
		why string
	}{
		"replica":             {value: "b"},
		"no site":             {value: "x", why: "no site"},
		"no value":            {value: ":confirm", why: "no site"},
		"active site":         {value: "a:confirm", why: "planned-failover"},
		"donor closed":        {value: "b:confirm", happens: func(w *world) { w.facts.Closed("a") }, why: "does not accept writes"},
		"donor on new volume": {value: "b:confirm", happens: func(w *world) { w.onVolume(map[string]string{"a": "new"}) }, why: "no healthy copy"},
		"takes over": {value: "b:confirm", happens: func(w *world) {
			w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
				s.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "a", To: "b", Cause: "Requested", Phase: v1alpha1.PlannedWaiting}
			})
		}, why: "abort-planned-failover"},
		"MySQL is down": {value: "b:confirm", happens: func(w *world) { w.facts.Set("b", scope.SiteFacts{Reachable: true}) }, why: "PersistentVolumeClaim mysql-orders-b-data"},
		"writable":      {value: "b:confirm", happens: func(w *world) { w.fact("b", func(f *scope.SiteFacts) { f.Writable = true }) }, why: "being fenced"},
		"being cloned":  {value: "b:confirm", happens: func(w *world) { w.fact("b", func(f *scope.SiteFacts) { f.Cloning = true }) }, why: "already"},
		"volume goes":   {value: "b:confirm", happens: func(w *world) { w.terminate("b") }, why: "kubectl delete pods -n shop -l "},
		"the donor has rows that no clone brings": {value: "b", happens: func(w *world) {
			w.fact("a", func(f *scope.SiteFacts) { f.Engines = &wire.EngineReport{Tables: 1, WithRows: 1} })
		}, why: "ENGINE=InnoDB"},
		"the donor has rows that no clone brings, confirmed": {value: "b:confirm", happens: func(w *world) {
			w.fact("a", func(f *scope.SiteFacts) { f.Engines = &wire.EngineReport{Tables: 1, WithRows: 1} })
		}},
		"diverged":             {value: "b", happens: func(w *world) { w.diverge("b") }, why: "b:confirm"},
		"diverged, confirmed":  {value: "b:confirm", happens: func(w *world) { w.diverge("b") }},
		"unsettled":            {value: "b", happens: lostLog, why: "b:confirm"},
		"unsettled, confirmed": {value: "b:confirm", happens: lostLog},
		"the only other copy": {value: "b", happens: func(w *world) {
			w.fact("c", func(f *scope.SiteFacts) { f.Following = false })
		}, why: "only healthy copy beside"},
		"the only other copy, confirmed": {value: "b:confirm", happens: func(w *world) {
			w.fact("c", func(f *scope.SiteFacts) { f.Following = false })
		}},
		"the other has diverged": {value: "b", happens: func(w *world) { w.diverge("c") }, why: "only healthy copy beside"},
		"no copy at all": {value: "b", happens: func(w *world) {
			w.fact("b", func(f *scope.SiteFacts) { f.Following = false })
			w.fact("c", func(f *scope.SiteFacts) { f.Following = false })
		}},
		"paused": {value: "b", happens: func(w *world) {
			w.order(v1alpha1.AnnotationPauseUntil, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := orderWorld(t)
			if tt.happens != nil {
				tt.happens(w)
			}
			if tt.why == "" {
				w.ordered("b", tt.value)
				w.reconcile()
				if w.r.Work.Jobs() != 1 {
					t.Errorf("%d jobs", w.r.Work.Jobs())
				}
				w.r.runner.Wait()
				return
			}
			w.order(v1alpha1.AnnotationRecloneSite, tt.value)
			w.reconcile()
			g := w.group()
			last := w.last(v1alpha1.RequestRecloneSite)
			if g.Annotations[v1alpha1.AnnotationRecloneSite] != "" || !strings.HasPrefix(last, tt.value+": Refused (") || !strings.Contains(last, tt.why) {
				t.Errorf("annotations %v, answer %s", g.Annotations, last)
			}
			w.offersConfirmation()
			if said := w.said.Of(v1alpha1.ReasonRecloneRefused); len(said) != 1 || !strings.Contains(said[0], tt.why) {
				t.Errorf("events %v", w.said.List)
			}
			if !w.provisioned("b") || w.site("b").Clone != nil || w.r.Work.Jobs() != 0 {
				t.Errorf("something was changed: %+v", w.site("b"))
			}
		})
	}
}

// What passes by itself is waited for.
func TestRecloneWaits(t *testing.T) {
	tests := map[string]func(*world){
		"nothing known": func(w *world) { w.facts.G.Sites = nil },
		"transition": func(w *world) {
			w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) { s.Transition = &v1alpha1.Transition{From: "a", To: "b"} })
		},
		"loss not known yet": func(w *world) {
			w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
				s.Failovers = []v1alpha1.FailoverRecord{{Epoch: 1, From: "b", To: "a"}}
			})
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			w := orderWorld(t)
			happens(w)
			w.order(v1alpha1.AnnotationRecloneSite, "b:confirm")
			w.reconcile()
			if w.group().Annotations[v1alpha1.AnnotationRecloneSite] != "b:confirm" || !w.provisioned("b") || w.r.Work.Jobs() != 0 {
				t.Errorf("annotations %v, %+v", w.group().Annotations, w.site("b"))
			}
		})
	}
}

// An order that a closer look refuses is answered, and nothing was thrown away.
func TestRecloneRefusedByALook(t *testing.T) {
	w := orderWorld(t)
	w.ordered("b", "b")
	w.ended("b", work.Outcome{Verdict: work.VerdictRefuse, Message: "the site has 3 transactions that the active site lacks", Order: "b"})
	w.reconcile()
	if last := w.last(v1alpha1.RequestRecloneSite); !strings.HasPrefix(last, "b: Refused (DataAtRisk): the site has 3 transactions") {
		t.Errorf("last request %q", last)
	}
	if w.site("b").Clone != nil {
		t.Errorf("the order stands: %+v", w.site("b"))
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonCloneRefused || !strings.Contains(c.Message, "b:confirm") {
		t.Errorf("condition %+v", c)
	}
}

// An order that was replaced meanwhile is not taken for the one that was answered.
func TestRecloneAnswersOnlyWhatItRead(t *testing.T) {
	w := orderWorld(t)
	w.order(v1alpha1.AnnotationRecloneSite, "x")
	s := &scope.Scope{Key: scopetest.Key, Group: w.group(), Now: time.Now()}
	w.order(v1alpha1.AnnotationRecloneSite, "b")
	if err := w.r.base.AnswerOrder(w.ctx, s, v1alpha1.RequestRecloneSite, "x", asks.Done("x")); err == nil {
		t.Error("an older view of the group was written")
	}
	if got := w.group().Annotations[v1alpha1.AnnotationRecloneSite]; got != "b" || w.last(v1alpha1.RequestRecloneSite) != "" {
		t.Errorf("the order is %q now, answered %q", got, w.last(v1alpha1.RequestRecloneSite))
	}
}

func TestPolicyReclones(t *testing.T) {
	counted := func(state string) func(*world) {
		return func(w *world) {
			w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
				s.Failovers = []v1alpha1.FailoverRecord{{Epoch: 1, From: "b", To: "a", LossExact: true, LostTransactions: 3, LostSet: uuidOfB + ":1-3", LostRowsState: state}}
			})
		}
	}
	spec := func(change func(*v1alpha1.FailoverSpec)) func(*world) {
		return func(w *world) { w.change(func(g *v1alpha1.MysqlFailoverGroup) { change(&g.Spec.Failover) }) }
	}
	tests := map[string]struct {
		happens func(*world)
		want    bool
	}{
		"errant":           {nil, true},
		"lost and counted": {counted(v1alpha1.LostRowsCounted), true},
		"rows not counted": {counted(""), false},
		"waited long enough": {func(w *world) {
			counted("")(w)
			w.r.base.Waits.Since(&scope.Scope{Key: scopetest.Key, Now: time.Now().Add(-30 * time.Minute)}, "count", &v1alpha1.FailoverRecord{Epoch: 1})
		}, true},
		"loss not known": {func(w *world) {
			w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
				s.Failovers = []v1alpha1.FailoverRecord{{Epoch: 1, From: "b", To: "a"}}
			})
		}, false},
		"Hold":    {spec(func(f *v1alpha1.FailoverSpec) { f.OnDivergence = v1alpha1.DivergenceHold }), false},
		"Observe": {spec(func(f *v1alpha1.FailoverSpec) { f.Mode = v1alpha1.FailoverObserve }), false},
		"paused": {func(w *world) {
			w.order(v1alpha1.AnnotationPauseUntil, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}, false},
		"it is the only other copy": {func(w *world) { w.facts.Set("c", scope.SiteFacts{MysqlUp: true}) }, false},
		"donor closed":              {func(w *world) { w.facts.Closed("a") }, false},
		"donor on new volume":       {func(w *world) { w.onVolume(map[string]string{"a": "new"}) }, false},
		"cloned since":              {func(w *world) { w.fact("b", func(f *scope.SiteFacts) { f.Executed = f.Executed.Subtract(f.Errant) }) }, false},
		"MySQL is down":             {func(w *world) { w.facts.Set("b", scope.SiteFacts{Diverged: true}) }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := orderWorld(t)
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.OnDivergence = v1alpha1.DivergenceReclone })
			w.diverge("b")
			if tt.happens != nil {
				tt.happens(w)
			}
			w.reconcile()
			clone := w.site("b").Clone
			if got := clone != nil && clone.Order == "onDivergence" && !w.provisioned("b"); got != tt.want || w.r.Work.Jobs() != 0 {
				t.Errorf("accepted %v, %d jobs, %+v", got, w.r.Work.Jobs(), w.site("b"))
			}
		})
	}
}

// I14: the policy leaves the only other copy to a person, says so once, and goes on once there is another copy.
func TestI14PolicyKeepsTheOnlyOtherCopy(t *testing.T) {
	w := orderWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.OnDivergence = v1alpha1.DivergenceReclone })
	w.diverge("b")
	g, _ := w.facts.Sites("", "")
	c := g.Sites["c"]
	w.facts.Set("c", scope.SiteFacts{MysqlUp: true})
	w.reconcile()
	w.reconcile()
	if w.site("b").Clone != nil || !w.provisioned("b") || w.said.Count(v1alpha1.ReasonRecloneWaits) != 1 {
		t.Errorf("%+v, events %v", w.site("b"), w.said.List)
	}
	if said := fmt.Sprint(w.said.List); !strings.Contains(said, "kubectl mfg reclone orders b -n shop --confirm-data-loss") {
		t.Errorf("the command is not named: %s", said)
	}
	w.facts.Set("c", c)
	w.reconcile()
	if clone := w.site("b").Clone; clone == nil || clone.Order != "onDivergence" {
		t.Errorf("it does not go on: %+v", w.site("b"))
	}
}

// If the other copy is lost while an accepted order of the policy waits for its turn, its clone waits, and a person is told how to go on.
func TestThePolicyTellsOfAnOrderThatWaits(t *testing.T) {
	w := orderWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.OnDivergence = v1alpha1.DivergenceReclone })
	w.diverge("b")
	w.reconcile()
	if clone := w.site("b").Clone; clone == nil || clone.Order != "onDivergence" {
		t.Fatalf("the policy did not order: %+v", w.site("b"))
	}
	waits := work.Outcome{Verdict: work.VerdictWait, Message: "it is the only other copy", Copy: true, Order: "onDivergence"}
	w.ended("b", waits)
	w.reconcile()
	w.reconcile()
	if said := w.said.Of(v1alpha1.ReasonRecloneWaits); len(said) != 1 || !strings.Contains(said[0], waits.Message) {
		t.Errorf("events %v", w.said.List)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); !strings.Contains(c.Message, waits.Message) {
		t.Errorf("condition %+v", c)
	}
}

// A site that diverged, was mended and diverges again is told of again.
func TestThePolicyTellsOfTheNextDivergence(t *testing.T) {
	w := orderWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.OnDivergence = v1alpha1.DivergenceReclone })
	w.fact("c", func(f *scope.SiteFacts) { f.Following = false })
	g, _ := w.facts.Sites("", "")
	whole := g.Sites["b"]
	for told := range 2 {
		w.diverge("b")
		w.reconcile()
		w.fact("b", func(f *scope.SiteFacts) { f.MysqlUp, f.Diverged = false, false }) // a lost answer
		w.reconcile()
		w.facts.Set("b", whole)
		w.diverge("b")
		w.reconcile()
		if w.said.Count(v1alpha1.ReasonRecloneWaits) != told+1 {
			t.Errorf("divergence %d: events %v", told+1, w.said.List)
		}
		w.facts.Set("b", whole)
		w.reconcile()
	}
}

// A pause keeps the operator from cloning by itself.
func TestPauseStopsClones(t *testing.T) {
	w := orderWorld(t)
	w.order(v1alpha1.AnnotationPauseUntil, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	w.strand()
	w.onVolume(map[string]string{"c": "new"})
	w.reconcile()
	w.reconcile()
	if !w.provisioned("b") || w.r.Work.Jobs() != 0 {
		t.Errorf("provisioned %v, %d jobs", w.provisioned("b"), w.r.Work.Jobs())
	}
	if w.provisioned("c") {
		t.Error("a site without its data passes for a candidate")
	}
}
