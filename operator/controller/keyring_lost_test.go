// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// The pod of a site whose escrow Secret is gone holds the only copy: it is not replaced, whatever else was changed.
func TestEscrowSecretGone(t *testing.T) {
	freshMetrics(t)
	w := sealedWorld(t)
	metricsSay(t, "c", v1alpha1.KeyringSealed, 1)
	w.must(w.c.Delete(w.ctx, secret("c", 1, "one")))
	w.escrowSeen()
	w.reconcile()
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringFailed || w.said.Count(v1alpha1.ReasonKeyringEscrowMissing) != 1 {
		t.Fatalf("c is %s; events %v", st.Phase, w.said.Of(v1alpha1.ReasonKeyringEscrowMissing))
	}
	if c := w.condition(v1alpha1.ConditionEncryptionReady); c.Reason != v1alpha1.ReasonKeyringEscrowMissing {
		t.Errorf("condition %+v", c)
	}
	metricsSay(t, "c", v1alpha1.KeyringFailed, 1)
	metricsSay(t, "a", v1alpha1.KeyringSealed, 1)
	before := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	if now := w.deployments(); now["c"] != before["c"] || now["a"] == before["a"] {
		t.Errorf("%v -> %v: c must stay, and a goes on", before, now)
	}
	// A person restores the content alone; the rest is done for them.
	restored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "mysql-orders-c-keyring-v1"},
		Data: map[string][]byte{v1alpha1.KeyringKey: []byte("wrong")}}
	w.must(w.c.Create(w.ctx, restored))
	w.escrowSeen()
	w.reconcile()
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringFailed {
		t.Fatalf("another content is taken for the keyring: %s", st.Phase)
	}
	var wrong corev1.Secret
	if w.get(&wrong, restored.Name); len(wrong.Labels) > 0 || len(wrong.Annotations) > 0 || wrong.Immutable != nil {
		t.Fatalf("another content is marked as a keyring, and the person cannot correct it: %+v", wrong.ObjectMeta)
	}
	w.must(w.c.Delete(w.ctx, restored))
	restored.ResourceVersion, restored.Data = "", map[string][]byte{v1alpha1.KeyringKey: []byte("one")}
	w.must(w.c.Create(w.ctx, restored))
	w.escrowSeen()
	w.reconcile()
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringSealed {
		t.Fatalf("c is %s: %s", st.Phase, st.Message)
	}
	metricsSay(t, "c", v1alpha1.KeyringSealed, 1)
	var made corev1.Secret
	w.get(&made, restored.Name)
	if made.Immutable == nil || !*made.Immutable || made.Labels[v1alpha1.LabelName] != v1alpha1.NameKeyring ||
		made.Annotations[v1alpha1.AnnotationKeyringDigest] != wire.KeyringDigest([]byte("one")) {
		t.Errorf("not completed: %+v", made.ObjectMeta)
	}
}

// The watch may miss the deletion: what a sealed site stands on is read again from time to time, and not at every reconcile.
func TestEscrowSecretGoneUnseen(t *testing.T) {
	w := sealedWorld(t)
	w.escrowSeen()
	w.reconcile() // every look is of this moment
	const late = time.Minute
	w.must(w.c.Delete(w.ctx, secret("c", 1, "one")))
	w.older(5*time.Minute - late)
	if again := w.reconcile(); again > 5*time.Minute {
		t.Errorf("looked at again after %s only: the Secrets are to be looked at every %s", again, 5*time.Minute)
	}
	if got := w.phases(); got != "Sealed Sealed Sealed" {
		t.Fatalf("phases %s before a look is due: the Secrets are read at every reconcile", got)
	}
	w.older(late)
	w.reconcile()
	if got := w.phases(); got != "Sealed Sealed Failed" || w.said.Count(v1alpha1.ReasonKeyringEscrowMissing) != 1 {
		t.Fatalf("phases %s once a look is due, want Sealed Sealed Failed; events %v", got, w.said.Of(v1alpha1.ReasonKeyringEscrowMissing))
	}
}

// older lets time pass for the looks that are remembered.
func (w *world) older(d time.Duration) { w.r.encryption.Age(d, 0) }

// fall has mysqld end at every start in the pod of a site that answers to a UID, with a keyring in its memory.
func (w *world) fall(site, uid, live string) {
	w.t.Helper()
	var pods corev1.PodList
	w.must(w.c.List(w.ctx, &pods, client.InNamespace(scopetest.Key.Namespace), client.MatchingLabels{v1alpha1.LabelSite: site}))
	pod := pods.Items[0].DeepCopy()
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels(site)...))
	pod.ResourceVersion, pod.UID = "", types.UID(uid)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: render.ContainerMySQL, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}}
	w.must(w.c.Create(w.ctx, pod))
	g, _ := w.facts.Sites("", "")
	f := g.Sites[site]
	f.MysqlUp, f.Following, f.PodUID = false, false, uid
	f.Keyring, f.ReportedAt = &wire.KeyringReport{Digest: wire.KeyringDigest([]byte(live))}, time.Now()
	w.facts.Set(site, f)
	w.silentSince(time.Now().Add(-scope.LostAfter), site, pod)
}

// silentSince has mysqld not start in the pod of a site since a moment.
func (w *world) silentSince(began time.Time, site string, pod *corev1.Pod) {
	w.r.base.Silences.Look(&scope.Scope{Key: scopetest.Key, Now: began, Pods: map[string]*corev1.Pod{site: pod}})
}

// I14: a mysqld that does not start in the pod of a rotation has its keyring there, and its data. Only a pod in which it
// never ran, and which has nothing but the keyring from before, tells that the new keys are lost.
func TestI14SilenceIsNoLoss(t *testing.T) {
	w := sealedWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: "c"}
	})
	w.reconcile()
	w.reconcile()
	w.boot("one", "c")
	w.reconcile()
	st, before := w.keyring("c"), w.deployments()["c"]
	if st.Stage != v1alpha1.KeyringRotating || st.RotationPod == "" {
		t.Fatalf("status %+v", st)
	}
	for _, live := range []string{"two", "one"} {
		w.fall("c", st.RotationPod, live)
		w.rest()
		w.rest()
		if now := w.keyring("c"); now.Work != v1alpha1.KeyringRotation || !w.site("c").Provisioned || w.deployments()["c"] != before {
			t.Fatalf("given up with the keyring %s in its pod: %+v", live, now)
		}
	}
	w.fall("c", "the next one", "one")
	w.rest()
	w.rest()
	if w.said.Count(v1alpha1.ReasonKeyringLost) != 1 || w.keyring("c").Work != v1alpha1.KeyringClone || w.deployments()["c"] == before {
		t.Errorf("not cloned anew: %+v", w.keyring("c"))
	}
}

// I17: what was read of a sealed site's escrow minutes ago proves nothing when its pod is to be replaced: of a Secret that lost its labels
// before it was deleted no watch tells.
func TestAnUpdateLooksForTheEscrowBeforeItReplacesAPodI17(t *testing.T) {
	w := sealedWorld(t)
	w.must(w.c.Delete(w.ctx, secret("c", 1, "one")))
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	before := w.deployments()["c"]
	if again := w.reconcile(); w.deployments()["c"] != before {
		t.Error("I17: the pod with the only copy is replaced")
	} else if again == 0 || again > scope.WhenMoving {
		t.Errorf("looked at again in %s", again)
	}
	if w.reconcile(); w.keyring("c").Phase != v1alpha1.KeyringFailed {
		t.Errorf("nobody has noticed: %+v", w.keyring("c"))
	}
	w.must(w.c.Create(w.ctx, secret("c", 1, "one")))
	w.escrowSeen()
	if w.reconcile(); w.keyring("c").Phase != v1alpha1.KeyringSealed {
		t.Errorf("it is back: %+v", w.keyring("c"))
	}
}
