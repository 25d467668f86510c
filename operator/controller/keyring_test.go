// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

func TestANewGroupEndsSealed(t *testing.T) {
	freshMetrics(t)
	w := encryptedWorld(t)
	w.reconcile()
	if got := w.phases(); got != "Unsealed Unsealed Unsealed" {
		t.Fatalf("phases %s", got)
	}
	metricsSay(t, "c", v1alpha1.KeyringUnsealed, 0)
	var token corev1.Secret
	w.get(&token, "mysql-orders-a-keyring-token")
	w.boot("one", "a", "b", "c")
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	for _, site := range []string{"a", "b", "c"} {
		w.push(site, 1, "one")
	}
	w.rest()
	if got := w.phases(); got != "Escrowed Escrowed Escrowed" {
		t.Fatalf("phases %s", got)
	}
	if w.keyring("b").Stage != "" {
		t.Error("b is made sealed before it holds the group's data")
	}
	covered := map[string]float64{"system_tablespace": 1, "redo_log": 1, "undo_log": 1, "binlog": 1, "keyring_read_only": 0}
	metricsSay(t, "c", v1alpha1.KeyringEscrowed, 1)
	metricsCover(t, "c", covered, 0)
	// The clone writes the keyring again.
	w.data("a", "b", "c")
	w.live("b", func(k *wire.KeyringReport) { k.Digest = wire.KeyringDigest([]byte("two")) })
	w.reconcile()
	if st := w.keyring("b"); st.Phase != v1alpha1.KeyringUnsealed {
		t.Errorf("b has another keyring than in escrow, and is %s", st.Phase)
	}
	w.push("b", 2, "two")
	before := w.deployments()
	w.rest()
	w.rest()
	after := w.deployments()
	if after["c"] == before["c"] || after["b"] != before["b"] || after["a"] != before["a"] {
		t.Errorf("not one site at a time, c first: %v -> %v", before, after)
	}
	w.boot("", "c")
	w.live("c", func(k *wire.KeyringReport) { k.Coverage.BinaryLog, k.Coverage.Unencrypted = false, 3 })
	w.rest()
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringSealed {
		t.Errorf("c is %s: %s", st.Phase, st.Message)
	}
	covered["binlog"], covered["keyring_read_only"] = 0, 1
	metricsSay(t, "c", v1alpha1.KeyringSealed, 1)
	metricsCover(t, "c", covered, 3)
	if err := w.c.Get(w.ctx, client.ObjectKey{Namespace: scopetest.Key.Namespace, Name: "mysql-orders-c-keyring-token"}, &token); err == nil {
		t.Error("I18: a sealed site keeps its token")
	}
	if c := w.condition(v1alpha1.ConditionEncryptionReady); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNotSealed {
		t.Errorf("condition %+v", c)
	}
}

func TestRotationOrders(t *testing.T) {
	freshMetrics(t)
	w, counted := sealedWorld(t), countRotations()
	annotate := func(site string) {
		w.change(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: site}
		})
	}
	for _, site := range []string{"b", "nowhere", ""} {
		annotate(site)
		w.reconcile()
		if _, still := w.group().Annotations[v1alpha1.AnnotationRotateKeyring]; still {
			t.Errorf("order for %q is not answered", site)
		}
		if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, site+": Refused (") {
			t.Errorf("answer to %q: %s", site, last)
		}
	}
	annotate("b")
	w.reconcile()
	w.reconcile()
	if why := w.keyring("b").RotationRefused; !strings.Contains(why, "is the active site") {
		t.Errorf("once the order is off the group, status says %q", why)
	}
	if n := w.said.Count(v1alpha1.ReasonKeyringRotationRefused); n != 4 {
		t.Errorf("%d refusals are told", n)
	}
	wantRotations(t, counted, map[string]float64{encryption.RotationRefused: 4})
	annotate("c")
	w.reconcile()
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringPending || st.Work != v1alpha1.KeyringRotation {
		t.Fatalf("c is %s for %s", st.Phase, st.Work)
	}
	before := w.deployments()
	w.reconcile()
	if now := w.deployments(); now["c"] == before["c"] || w.keyring("c").Phase != v1alpha1.KeyringUnsealed {
		t.Fatalf("c is %s, and its pod is not replaced", w.keyring("c").Phase)
	}
	w.boot("one", "c")
	w.reconcile()
	if st := w.keyring("c"); st.Stage != v1alpha1.KeyringRotating {
		t.Fatalf("stage %q: %s", st.Stage, st.Message)
	}
	// What the job does.
	turn := w.r.Work.BeginRotation(scope.SiteKey{Group: scopetest.Key, Site: "c"}, func() {})
	if purpose, busy := w.r.Work.Busy(scopetest.Key.Namespace, scopetest.Key.Name, "c"); !busy || purpose != work.PurposeRotation {
		t.Error("nobody is told that the keys of c are being rotated")
	}
	turn.Finish(nil)
	w.live("c", func(k *wire.KeyringReport) { k.Digest = wire.KeyringDigest([]byte("two")) })
	w.reconcile()
	if st := w.keyring("c"); !st.Rotated {
		t.Fatalf("not noted: %+v", st)
	}
	w.push("c", 2, "two")
	w.rest()
	w.rest()
	w.boot("", "c")
	w.rest()
	w.rest()
	st, g := w.keyring("c"), w.group()
	if st.Phase != v1alpha1.KeyringSealed || st.KeyringVersion != 2 || st.Rotated {
		t.Errorf("c is %+v", st)
	}
	metricsSay(t, "c", v1alpha1.KeyringSealed, 2)
	wantRotations(t, counted, map[string]float64{encryption.RotationRefused: 4}) // what ends well is counted by the job
	if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, "c: Done (Completed): ") || g.Annotations[v1alpha1.AnnotationRotateKeyring] != "" {
		t.Errorf("annotations %v", g.Annotations)
	}
}

func TestAdoption(t *testing.T) {
	w := runningWorld(t)
	w.r.encryption.Escrow, w.r.encryption.EscrowURL, w.r.Install.EscrowURL = vault{w.c}, "https://operator:8443", "https://operator:8443"
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	before := w.deployments()
	w.change(scopetest.WithEncryption)
	w.rest()
	if now := w.deployments(); fmt.Sprint(now) != fmt.Sprint(before) || w.group().Status.EncryptionAtRest != nil {
		t.Errorf("something was changed: %v -> %v", before, now)
	}
	if c := w.condition(v1alpha1.ConditionEncryptionReady); c.Reason != v1alpha1.ReasonEncryptionAdoptionRefused || w.said.Count(v1alpha1.ReasonEncryptionAdoptionRefused) != 1 {
		t.Errorf("condition %+v, events %v", c, w.said.List)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationEncryptionAdopt: "confirm"}
	})
	// I16: what cannot come into escrow is no candidate, so nothing is begun while the endpoint is out of reach.
	w.r.encryption.ReachEscrow = func(context.Context, []byte) error { return errors.New("connection refused") }
	w.rest()
	if now := w.deployments(); fmt.Sprint(now) != fmt.Sprint(before) || w.keyring("c").Phase != "" {
		t.Errorf("adopted without an escrow: %v -> %v, c %+v", before, now, w.keyring("c"))
	}
	if m := w.keyring("c").Message; !strings.Contains(m, "connection refused") {
		t.Errorf("c says %q", m)
	}
	w.r.encryption.ReachEscrow = func(context.Context, []byte) error { return nil }
	w.r.encryption.Forget(scopetest.Key)
	w.reconcile()
	w.reconcile()
	if now := w.deployments(); now["c"] == before["c"] || now["a"] != before["a"] || now["b"] != before["b"] {
		t.Errorf("not one at a time: %v -> %v", before, now)
	}
	if st := w.keyring("c"); st.Work != v1alpha1.KeyringRotation {
		t.Errorf("c is adopted for %s, which lets its data be wiped", st.Work)
	}
	for _, site := range []string{"a", "b"} {
		if st := w.keyring(site); st.Phase != "" || !strings.Contains(st.Message, "site c ") {
			t.Errorf("I16: %s is not to be adopted before c is in escrow: %+v", site, st)
		}
	}
}

// I16: the endpoint is asked for with what a sidecar believes; what cannot be found out is trouble.
func TestTheEscrowEndpointIsAskedForAsASidecarWould(t *testing.T) {
	w := encryptedWorld(t, withTLS)
	s := &scope.Scope{Group: w.group(), Key: scopetest.Key, Now: time.Now()}
	var asked []string
	w.r.encryption.ReachEscrow = func(_ context.Context, authorities []byte) error {
		asked = append(asked, string(authorities))
		return nil
	}
	if why := w.r.encryption.EscrowTrouble(w.ctx, s); !strings.Contains(why, "orders-tls") || len(asked) != 0 {
		t.Errorf("without the Secret: %q, asked with %q", why, asked)
	}
	w.must(w.c.Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "orders-tls"}, Data: map[string][]byte{"ca.crt": []byte("authorities")},
	}))
	if why := w.r.encryption.EscrowTrouble(w.ctx, s); why == "" || len(asked) != 0 {
		t.Errorf("looked at again at once: %q, asked with %q", why, asked)
	}
	s.Now = s.Now.Add(15 * time.Second)
	if why := w.r.encryption.EscrowTrouble(w.ctx, s); why != "" || fmt.Sprint(asked) != "[authorities]" {
		t.Errorf("with the Secret: %q, asked with %q", why, asked)
	}
}

// I15: what a person or another operator wrote since the group was read is not written over, and nothing is done.
func TestKeyringStatusIsNotWrittenOverANewerOne(t *testing.T) {
	w := sealedWorld(t)
	s := &scope.Scope{Group: w.group(), Key: scopetest.Key, Now: time.Now(), Again: scope.WhenSettled}
	w.monitorStatus("a", 9)
	d := keyring.Decision{Sites: []keyring.Next{{Name: "a", Status: v1alpha1.SiteKeyringStatus{Name: "a", Phase: v1alpha1.KeyringPending}}}}
	if err := w.r.encryption.Persist(w.ctx, s, d, nil); err == nil {
		t.Error("an old look was written over a newer one")
	}
}

// A person names an older version in status, and the pod rolls to it through the ordered update.
func TestRollBackByStatus(t *testing.T) {
	w := sealedWorld(t)
	w.push("c", 2, "two")
	before := w.deployments()
	g := w.group()
	for i := range g.Status.EncryptionAtRest.Sites {
		if st := &g.Status.EncryptionAtRest.Sites[i]; st.Name == "c" {
			st.KeyringSecret, st.KeyringVersion, st.KeyringDigest = "mysql-orders-c-keyring-v2", 2, wire.KeyringDigest([]byte("two"))
		}
	}
	w.must(w.c.Status().Update(w.ctx, g))
	w.reconcile()
	if now := w.deployments(); now["c"] == before["c"] || w.keyring("c").Phase != v1alpha1.KeyringEscrowed {
		t.Fatalf("c is %+v", w.keyring("c"))
	}
	w.boot("", "c")
	w.rest()
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringSealed || st.KeyringVersion != 2 {
		t.Errorf("c is %+v", st)
	}
}

func TestAllSealed(t *testing.T) {
	w := sealedWorld(t)
	if c := w.condition(v1alpha1.ConditionEncryptionReady); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonAllSealed {
		t.Errorf("condition %+v", c)
	}
	if at := w.group().Status.EncryptionAtRest; !at.Sealed || !at.Sites[0].Coverage.KeyringReadOnly || at.Sites[0].Work != "" {
		t.Errorf("status %+v", at)
	}
	hashes := w.deployments()
	// An operator that was restarted wishes the same.
	w.r.encryption.Forget(scopetest.Key)
	w.rest()
	if now := w.deployments(); fmt.Sprint(now) != fmt.Sprint(hashes) || w.phases() != "Sealed Sealed Sealed" {
		t.Errorf("a restart changes something: %v, %s", now, w.phases())
	}
}
