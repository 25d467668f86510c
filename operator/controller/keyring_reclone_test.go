// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// answered is what became of an order for a reclone; empty while it stands.
func (w *world) answered(value string) string {
	w.t.Helper()
	if w.group().Annotations[v1alpha1.AnnotationRecloneSite] != "" {
		return ""
	}
	outcome, _ := strings.CutPrefix(w.last(v1alpha1.RequestRecloneSite), value+": ")
	return outcome
}

// A site whose escrow Secret is gone is unsealed only on a word that its data may go. An order without it would take the mark off the
// site, and then wait without end.
func TestRecloneOfASiteWithoutItsEscrowSecret(t *testing.T) {
	w := sealedWorld(t)
	w.must(w.c.Delete(w.ctx, secret("c", 1, "one")))
	w.escrowSeen()
	w.reconcile()
	w.order(v1alpha1.AnnotationRecloneSite, "c")
	w.reconcile()
	if got := w.answered("c"); !strings.HasPrefix(got, "Refused (") || !strings.Contains(got, "kubectl mfg recover-keyring orders c -n shop") || !strings.Contains(got, "c:confirm") {
		t.Errorf("answered %q", got)
	}
	if !w.site("c").Provisioned || w.site("c").Clone != nil {
		t.Errorf("something was changed: %+v", w.site("c"))
	}
	w.ordered("c", "c:confirm")
	w.reconcile()
	w.reconcile()
	if st := w.keyring("c"); st.Work != v1alpha1.KeyringClone || st.SeedVersion != 0 {
		t.Errorf("by a confirmed order: %+v", st)
	}
}

// stuck has mysqld end at every start in the sealed pod of a site.
func (w *world) stuck(site string) {
	w.t.Helper()
	w.fall(site, "stuck-"+site, "one")
	w.live(site, func(k *wire.KeyringReport) { k.Sealed = true })
}

// remake changes the pod of a site as only another one could be.
func (w *world) remake(site string, change func(*corev1.Pod)) {
	w.t.Helper()
	var pods corev1.PodList
	w.must(w.c.List(w.ctx, &pods, client.InNamespace(scopetest.Key.Namespace), client.MatchingLabels{v1alpha1.LabelSite: site}))
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels(site)...))
	pod := pods.Items[0].DeepCopy()
	pod.ResourceVersion = ""
	change(pod)
	w.must(w.c.Create(w.ctx, pod))
}

// A sealed pod whose keyring does not open the data never starts, and nobody can look at what is on its volume. A person may give that
// up: then the site starts from a fresh keyring, as from the one that it has mysqld would never start.
func TestRecloneOfASealedSiteThatNeverOpens(t *testing.T) {
	w := sealedWorld(t)
	w.stuck("c")
	w.order(v1alpha1.AnnotationRecloneSite, "c")
	w.reconcile()
	if got := w.answered("c"); !strings.HasPrefix(got, "Refused (") || !strings.Contains(got, "c:confirm") {
		t.Fatalf("without a confirmation answered %q", got)
	}
	if !w.site("c").Provisioned {
		t.Fatal("something was changed")
	}
	before := w.deployments()["c"]
	w.ordered("c", "c:confirm")
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringSealed || w.deployments()["c"] != before {
		t.Errorf("I15: unsealed before the order was durable: %+v", st)
	}
	for range 3 {
		w.reconcile()
	}
	st := w.keyring("c")
	if st.Phase != v1alpha1.KeyringUnsealed || st.Work != v1alpha1.KeyringClone || w.deployments()["c"] == before {
		t.Fatalf("not unsealed for a clone: %+v", st)
	}
	if st.SeedVersion != 0 {
		t.Errorf("starts from version %d again, with which mysqld does not start", st.SeedVersion)
	}
	// While it is cloned mysqld may end too, and what came into being in this round is not meant.
	w.boot("two", "c")
	w.push("c", 2, "two")
	w.fall("c", "cloned", "two")
	w.rest()
	w.rest()
	if now := w.keyring("c"); now.Round != st.Round {
		t.Errorf("I14: begun anew: %+v", now)
	}
}

// I14: what holds of any order holds of one for a site that never opens.
func TestI14RecloneOfAStuckSiteIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		site    string
		happens func(*world)
		why     string
	}{
		"no confirmation": {"c", func(*world) {}, "order c:confirm"},
		"the active site": {"b:confirm", func(w *world) { w.stuck("b") }, "active site"},
		"donor closed":    {"c:confirm", func(w *world) { w.facts.Closed("b") }, "does not accept writes"},
		"donor on new volume": {"c:confirm", func(w *world) {
			w.onVolume(map[string]string{"b": "old"})
			w.reconcile()
			w.onVolume(map[string]string{"b": "new"})
		}, "no healthy copy"},
		"about to take over": {"a:confirm", func(w *world) {
			w.stuck("a")
			w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
				s.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "b", To: "a", Cause: "Requested", Phase: v1alpha1.PlannedWaiting}
			})
		}, "abort-planned-failover"},
		"mysqld only stopped": {"c:confirm", func(w *world) {
			w.remake("c", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode = 137 })
		}, "does not answer"},
		"the pod is young": {"c:confirm", func(w *world) {
			w.remake("c", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Now().Add(-scope.LostAfter / 2)) })
		}, "does not answer"},
		"the operator's clock is ahead": {"c:confirm", func(w *world) {
			w.remake("c", func(p *corev1.Pod) {
				p.UID, p.CreationTimestamp = "young", metav1.NewTime(time.Now().Add(-scope.LostAfter))
			})
		}, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := sealedWorld(t)
			w.stuck("c")
			tt.happens(w)
			w.reconcile()
			w.order(v1alpha1.AnnotationRecloneSite, tt.site)
			w.reconcile()
			if got := w.answered(tt.site); !strings.HasPrefix(got, "Refused (") || !strings.Contains(got, tt.why) {
				t.Errorf("answered %q", got)
			}
			w.offersConfirmation()
			site, _, _ := strings.Cut(tt.site, ":")
			if !w.site(site).Provisioned || w.keyring(site).Phase != v1alpha1.KeyringSealed {
				t.Errorf("something was changed: %+v, %+v", w.site(site), w.keyring(site))
			}
		})
	}
}

// I14: in a pod that is not sealed the only copy of the keys may be, whatever keeps mysqld from starting.
func TestI14RecloneOfAStuckUnsealedSiteIsRefused(t *testing.T) {
	w := sealedWorld(t)
	w.order(v1alpha1.AnnotationRotateKeyring, "c")
	w.reconcile()
	w.reconcile()
	w.boot("one", "c")
	w.reconcile()
	w.fall("c", w.keyring("c").RotationPod, "two")
	w.order(v1alpha1.AnnotationRecloneSite, "c:confirm")
	w.reconcile()
	if got := w.answered("c:confirm"); !strings.Contains(got, "does not answer") || !w.site("c").Provisioned {
		t.Errorf("answered %q, %+v", got, w.site("c"))
	}
}

// I14: a diverged site that never opens is given up by a person, not by spec.failover.onDivergence: nobody can look at what it has.
func TestI14PolicyGivesUpNothingThatCannotBeRead(t *testing.T) {
	w := sealedWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.OnDivergence = v1alpha1.DivergenceReclone })
	w.stuck("c")
	w.diverge("c")
	w.reconcile()
	if !w.site("c").Provisioned || w.site("c").Clone != nil {
		t.Errorf("given up: %+v", w.site("c"))
	}
}

// I14: only of a pod that is made sealed, of a site that is to be sealed, can it be said that its keyring does not open the data.
func TestI14NeverOpens(t *testing.T) {
	for name, tt := range map[string]struct {
		status v1alpha1.SiteKeyringStatus
		change func(*corev1.Pod, *v1alpha1.MysqlFailoverGroup)
		want   bool
	}{
		"sealed":          {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringSealed}, nil, true},
		"to be sealed":    {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringEscrowed, Stage: v1alpha1.KeyringSealing}, nil, true},
		"escrowed":        {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringEscrowed, Work: v1alpha1.KeyringClone}, nil, false},
		"unsealed by now": {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringRotation}, nil, false},
		"Secret is gone":  {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringFailed}, nil, false},
		"pod not replaced": {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringEscrowed, Stage: v1alpha1.KeyringSealing}, func(p *corev1.Pod, _ *v1alpha1.MysqlFailoverGroup) {
			p.Annotations[v1alpha1.AnnotationKeyringRound] = "2"
		}, false},
		"on its way out": {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringSealed}, func(p *corev1.Pod, _ *v1alpha1.MysqlFailoverGroup) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}, false},
		"serves": {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringSealed}, func(p *corev1.Pod, _ *v1alpha1.MysqlFailoverGroup) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, false},
		"not encrypted": {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringSealed}, func(_ *corev1.Pod, g *v1alpha1.MysqlFailoverGroup) { g.Spec.EncryptionAtRest = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			hash := map[string]string{v1alpha1.AnnotationSpecHash: "h"}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(hash)}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: render.ContainerMySQL, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: scope.SupervisorGaveUp}},
			}}}}
			group := scopetest.Group(scopetest.WithEncryption)
			tt.status.Name = "c"
			group.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{tt.status}}
			if tt.change != nil {
				tt.change(pod, group)
			}
			s := &scope.Scope{Group: group, Now: time.Now(), Known: true, Pods: map[string]*corev1.Pod{"c": pod}, SilentFor: map[string]time.Duration{"c": scope.LostAfter},
				Deployments: map[string]*appsv1.Deployment{"c": {ObjectMeta: metav1.ObjectMeta{Annotations: hash}}}}
			if got := scope.NeverOpens(s, "c"); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
