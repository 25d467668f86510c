// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/operator/keyring"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// rotatedWorld is a group whose site c has new master keys, in its pod alone.
func rotatedWorld(t *testing.T, options ...scopetest.Option) *world {
	t.Helper()
	w := sealedWorld(t, options...)
	w.order(v1alpha1.AnnotationRotateKeyring, "c")
	w.reconcile()
	w.reconcile()
	w.boot("one", "c")
	w.reconcile()
	w.live("c", func(k *wire.KeyringReport) { k.Digest = wire.KeyringDigest([]byte("two")) })
	w.rest()
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringUnsealed {
		t.Fatalf("c is %+v", st)
	}
	return w
}

func (w *world) deleted() bool {
	w.t.Helper()
	err := w.c.Get(w.ctx, scopetest.Key, &v1alpha1.MysqlFailoverGroup{})
	w.must(client.IgnoreNotFound(err))
	return apierrors.IsNotFound(err)
}

// end deletes the group, and looks twice: sidecars have spoken in between.
func (w *world) end() {
	w.t.Helper()
	w.loops.ensured, w.loops.forgotten = 0, 0
	w.must(w.c.Delete(w.ctx, w.group()))
	w.reconcile()
	if w.deleted() {
		return
	}
	w.live("c", func(*wire.KeyringReport) {})
	w.calm()
	w.reconcile()
}

// prepare has people have prepared the volume of a site.
func (w *world) prepare(site string) {
	w.t.Helper()
	volume := &corev1.PersistentVolumeClaim{}
	w.get(volume, v1alpha1.DataVolumeName(scopetest.Key.Name, site))
	volume.Annotations = map[string]string{v1alpha1.AnnotationPrepared: "true"}
	volume.OwnerReferences = nil
	w.must(w.c.Update(w.ctx, volume))
}

func noPatience(g *v1alpha1.MysqlFailoverGroup) {
	g.Spec.EncryptionAtRest.Keyring.EscrowTimeoutSeconds = 0
}

// The pods of a group end with it, and with the pod of an unsealed site what its volume needs, if the operator no longer takes it.
func TestDeletionWaitsForAKeyringInAPodAlone(t *testing.T) {
	w := rotatedWorld(t)
	w.end()
	if w.deleted() {
		t.Fatal("the keyring goes with the pod")
	}
	if w.loops.forgotten != 0 || w.loops.ensured == 0 {
		t.Errorf("the loop that vouches for the pod: asked for %d times, ended %d times", w.loops.ensured, w.loops.forgotten)
	}
	if again := w.reconcile(); again == 0 || again > scope.WhenMoving {
		t.Errorf("looked at again in %s", again)
	}
	if said := w.said.Of(v1alpha1.ReasonDeletionWaits); len(said) != 1 || !strings.Contains(said[0], "keyring of c ") || !strings.Contains(said[0], "at the latest") {
		t.Errorf("events %v", said)
	}
	w.push("c", 2, "two")
	w.reconcile()
	if !w.deleted() || w.loops.forgotten == 0 || w.said.Count(v1alpha1.ReasonKeyringLeftBehind) != 0 {
		t.Errorf("in escrow: deleted %t, loop ended %d times, events %v", w.deleted(), w.loops.forgotten, w.said.List)
	}
	var kept corev1.Secret
	if w.get(&kept, "mysql-orders-c-keyring-v2"); len(kept.OwnerReferences) != 0 {
		t.Errorf("the garbage collector comes for %+v", kept.OwnerReferences)
	}
}

// I17: a volume that people prepared stays with Delete too, so a group that goes waits for its keyring. What its pods and the operator speak to
// each other with is there until then, and what is the group's own goes only afterwards.
func TestDeletionWaitsForTheKeyringOfAPreparedVolumeI17(t *testing.T) {
	w := rotatedWorld(t, deletePolicy)
	w.prepare("c")
	own := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.AccountsSecret("orders")}},
		secret("a", 1, "one"), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-a-data"}},
	}
	w.end()
	if w.deleted() {
		t.Fatal("I17: the keyring of a volume that stays goes with the pod")
	}
	if w.loops.forgotten != 0 || w.loops.ensured == 0 {
		t.Errorf("the loop that vouches for the pod: asked for %d times, ended %d times", w.loops.ensured, w.loops.forgotten)
	}
	for _, obj := range own {
		w.get(obj, obj.GetName())
	}
	w.push("c", 2, "two")
	w.reconcile()
	if !w.deleted() || w.loops.forgotten == 0 || w.said.Count(v1alpha1.ReasonKeyringLeftBehind) != 0 {
		t.Errorf("in escrow: deleted %t, loop ended %d times, events %v", w.deleted(), w.loops.forgotten, w.said.List)
	}
	for _, obj := range own {
		if err := w.c.Get(w.ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			t.Errorf("the group's own %s is still there: %v", obj.GetName(), err)
		}
	}
	var kept corev1.Secret
	if w.get(&kept, "mysql-orders-c-keyring-v2"); len(kept.OwnerReferences) != 0 {
		t.Errorf("the garbage collector comes for %+v", kept.OwnerReferences)
	}
	w.get(&corev1.PersistentVolumeClaim{}, "mysql-orders-c-data")
}

// A group whose volumes nobody can look at does not go: one of them may stay, and need its keyring.
func TestDeletionWaitsForALookAtTheVolumes(t *testing.T) {
	w := rotatedWorld(t, deletePolicy)
	w.must(w.c.Delete(w.ctx, w.group()))
	away := errors.New("the API server is away")
	w.r.base.Live = noVolumes{w.r.base.Live, away}
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); !errors.Is(err, away) || w.deleted() {
		t.Errorf("deleted %t, %v", w.deleted(), err)
	}
}

// noVolumes reads no volume.
type noVolumes struct {
	client.Reader
	err error
}

func (r noVolumes) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, is := o.(*corev1.PersistentVolumeClaim); is {
		return r.err
	}
	return r.Reader.Get(ctx, key, o, opts...)
}

// What a person brings back while the deletion waits stays too, whoever owns it.
func TestDeletionKeepsWhatIsBroughtBack(t *testing.T) {
	w := sealedWorld(t)
	w.must(w.c.Delete(w.ctx, secret("c", 1, "one")))
	w.escrowSeen()
	w.reconcile()
	w.end()
	if w.deleted() {
		t.Fatal("the only copy goes with the pod")
	}
	w.r.encryption.Escrow = withSecretBack{vault{w.c}, w}
	w.reconcile()
	var kept corev1.Secret
	if w.get(&kept, "mysql-orders-c-keyring-v1"); !w.deleted() || len(kept.OwnerReferences) != 0 {
		t.Errorf("deleted %t, the garbage collector comes for %+v", w.deleted(), kept.OwnerReferences)
	}
}

// withSecretBack has the Secret brought back in the moment in which it is looked for.
type withSecretBack struct {
	vault
	w *world
}

func (r withSecretBack) Versions(ctx context.Context, ns, group, site string) ([]keyring.Version, error) {
	if site == "c" {
		r.w.must(client.IgnoreAlreadyExists(r.w.c.Create(ctx, secret("c", 1, "one"))))
	}
	return r.vault.Versions(ctx, ns, group, site)
}

// ending is a namespace that is being deleted.
type ending struct{ client.Client }

func (ending) Create(context.Context, client.Object, ...client.CreateOption) error {
	err := apierrors.NewForbidden(corev1.Resource("secrets"), "", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// A deletion waits only for what can come, and for no longer than that takes.
func TestDeletionDoesNotHang(t *testing.T) {
	bare := func(t *testing.T) *world {
		w := encryptedWorld(t)
		w.reconcile()
		w.boot("one", "a", "b", "c")
		w.rest()
		return w
	}
	rotated := func(t *testing.T) *world { return rotatedWorld(t) }
	sealed := func(t *testing.T) *world { return sealedWorld(t) }
	missing := func(t *testing.T) *world {
		w := sealedWorld(t)
		w.must(w.c.Delete(w.ctx, secret("c", 1, "one")))
		w.escrowSeen()
		w.reconcile()
		return w
	}
	for name, tt := range map[string]struct {
		reason  string
		world   func(*testing.T) *world
		happens func(*world)
		Waits   bool
	}{
		"sealed":                     {"all is in escrow", sealed, nil, false},
		"sealed, after a restart":    {"nothing has to be known of sealed pods", sealed, func(w *world) { w.facts.G.Sites = nil }, false},
		"rotated, after a restart":   {"nobody knows yet what the pod has", rotated, func(w *world) { w.facts.G.Sites = nil }, true},
		"rotated, sidecar is silent": {"nor now", rotated, func(w *world) { w.fact("c", func(f *scope.SiteFacts) { f.Keyring = nil }) }, true},
		"namespace ends":             {"no Secret is taken there any more", rotated, func(w *world) { w.r.base.Client = ending{w.r.base.Client} }, false},
		"pod is gone":                {"nothing is in memory", rotated, func(w *world) { w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels("c")...)) }, false},
		"pod waits for a node":       {"nor there", rotated, func(w *world) { w.remake("c", func(p *corev1.Pod) { p.Spec.NodeName = "" }) }, false},
		"pod did not begin": {"nor in that one", rotated, func(w *world) {
			w.remake("c", func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: render.ContainerBootstrap, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
			})
			w.fact("c", func(f *scope.SiteFacts) { f.Keyring = nil })
		}, false},
		"keys of the pod, in escrow": {"no pod comes that has to start from them", rotated, func(w *world) {
			w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
				for i := range s.EncryptionAtRest.Sites {
					if st := &s.EncryptionAtRest.Sites[i]; st.Name == "c" {
						st.Rotated, st.SeedVersion, st.SeedDigest = true, 0, ""
					}
				}
			})
			w.live("c", func(k *wire.KeyringReport) { k.Digest = wire.KeyringDigest([]byte("one")) })
		}, false},
		"Delete":      {"the volume goes too", rotated, func(w *world) { w.change(deletePolicy) }, false},
		"no data yet": {"it is made anew", bare, nil, false},
		"just cloned": {"a group of the same name would start it with what was there before", rotated, func(w *world) {
			w.data("a", "b")
		}, true},
		"Secret is gone":                  {"the pod has the only copy, and a person may save it", missing, nil, true},
		"Secret is gone, after a restart": {"it may have it", missing, func(w *world) { w.facts.G.Sites = nil }, true},
		"Secret is gone, its sidecar silent": {"one lost answer is no proof that there is nothing to save", missing, func(w *world) {
			w.fact("c", func(f *scope.SiteFacts) { f.Keyring = nil })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := tt.world(t)
			if tt.happens != nil {
				tt.happens(w)
			}
			// What was not known stays so.
			w.must(w.c.Delete(w.ctx, w.group()))
			w.reconcile()
			w.calm()
			if !w.deleted() {
				w.reconcile()
			}
			if w.deleted() == tt.Waits {
				t.Fatalf("%s: deleted %t, events %v", tt.reason, w.deleted(), w.said.Of(v1alpha1.ReasonDeletionWaits))
			}
			if !tt.Waits {
				if w.said.Count(v1alpha1.ReasonKeyringLeftBehind) != 0 {
					t.Errorf("events %v", w.said.List)
				}
				return
			}
			w.change(noPatience)
			w.reconcile()
			if said := w.said.Of(v1alpha1.ReasonKeyringLeftBehind); !w.deleted() || len(said) != 1 || !strings.Contains(said[0], "mysql-orders-c-data") {
				t.Errorf("after escrowTimeoutSeconds: deleted %t, events %v", w.deleted(), said)
			}
		})
	}
}

// The pod of a site that left the specification is kept for its keyring, and the operator goes on to take it.
func TestRemovalWaitsForAKeyringInAPodAlone(t *testing.T) {
	leave := func(w *world) {
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
		w.askNobody()
		w.reconcile()
		w.reconcile()
	}
	there := func(w *world) bool { _, there := w.deployments()["c"]; return there }
	t.Run("waits", func(t *testing.T) {
		w := rotatedWorld(t)
		leave(w)
		if !there(w) {
			t.Fatal("the keyring went with the pod")
		}
		if st := w.keyring("c"); st.Phase != v1alpha1.KeyringUnsealed {
			t.Errorf("what its pod pushes is refused: %+v", st)
		}
		if said := w.said.Of(v1alpha1.ReasonSiteRemovalRefused); len(said) != 1 || !strings.Contains(said[0], "until its keyring is in escrow") {
			t.Errorf("events %v", said)
		}
		w.push("c", 2, "two")
		w.reconcile()
		w.live("c", func(*wire.KeyringReport) {})
		w.calm()
		w.reconcile()
		if there(w) || w.said.Count(v1alpha1.ReasonKeyringLeftBehind) != 0 {
			t.Errorf("in escrow: still there %t, events %v", there(w), w.said.List)
		}
		if w.reconcile(); w.keyring("c").Phase != "" {
			t.Errorf("status of what is gone: %+v", w.keyring("c"))
		}
		var kept corev1.Secret
		w.get(&kept, "mysql-orders-c-keyring-v2")
	})
	t.Run("not for ever", func(t *testing.T) {
		w := rotatedWorld(t)
		leave(w)
		w.change(noPatience)
		w.reconcile()
		if there(w) || w.said.Count(v1alpha1.ReasonKeyringLeftBehind) != 1 {
			t.Errorf("still there %t, events %v", there(w), w.said.List)
		}
	})
	t.Run("each time anew", func(t *testing.T) {
		w := rotatedWorld(t)
		sites := w.group().Spec.Sites
		leave(w)
		w.waitedSince(time.Now().Add(-10*time.Minute), encryption.WaitForKeyring("c"))
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = sites })
		w.reconcile()
		leave(w)
		if !there(w) {
			t.Error("it came back in between, and was not waited for")
		}
	})
	t.Run("with Delete for a volume that was prepared (I17)", func(t *testing.T) {
		w := rotatedWorld(t, deletePolicy)
		w.prepare("c")
		leave(w)
		if !there(w) {
			t.Fatal("I17: the keyring of a volume that stays went with the pod")
		}
		w.push("c", 2, "two")
		w.reconcile()
		w.live("c", func(*wire.KeyringReport) {})
		w.calm()
		w.reconcile()
		if there(w) || w.said.Count(v1alpha1.ReasonKeyringLeftBehind) != 0 {
			t.Errorf("in escrow: still there %t, events %v", there(w), w.said.List)
		}
		w.get(&corev1.Secret{}, "mysql-orders-c-keyring-v2")
		w.get(&corev1.PersistentVolumeClaim{}, "mysql-orders-c-data")
	})
	t.Run("not with Delete", func(t *testing.T) {
		w := rotatedWorld(t, deletePolicy)
		leave(w)
		if there(w) {
			t.Error("its volume goes too")
		}
	})
}

// I9: an operator that was away when the group was deleted, or whose clock is ahead of the API server's, has not waited for anything yet.
func TestDeletionThatIsSeenLateWaitsAllTheSame(t *testing.T) {
	w := rotatedWorld(t)
	group := w.group()
	group.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(-time.Hour)))
	if waits, err := w.r.encryption.AwaitEscrow(w.ctx, group); err != nil || !waits {
		t.Fatalf("the keyring goes with the pod: waits %t, %v, events %v", waits, err, w.said.List)
	}
	group.Spec.EncryptionAtRest.Keyring.EscrowTimeoutSeconds = 0
	if waits, err := w.r.encryption.AwaitEscrow(w.ctx, group); err != nil || waits {
		t.Errorf("it never ends: waits %t, %v", waits, err)
	}
}

// What disappears when nobody looks at phases any more is missing all the same.
func TestDeletionWaitsForASecretThatDisappearsDuringIt(t *testing.T) {
	w := sealedWorld(t)
	w.must(w.c.Delete(w.ctx, secret("c", 1, "one")))
	w.escrowSeen()
	w.end()
	if w.deleted() {
		t.Fatalf("the only copy goes with the pod: events %v", w.said.List)
	}
	w.must(w.c.Create(w.ctx, secret("c", 1, "one")))
	w.escrowSeen()
	if w.reconcile(); !w.deleted() {
		t.Errorf("it is back: events %v", w.said.List)
	}
}
