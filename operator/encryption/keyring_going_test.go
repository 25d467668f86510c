// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// A deletion that waits because nobody can look says so, once, and if it goes on without a look it says what that may cost.
func TestADeletionThatCannotLookSaysSo(t *testing.T) {
	group := scopetest.Group(scopetest.Running, scopetest.WithEncryption)
	sh := newShell(t, group)
	sh.rest.observes = errAway
	for range 2 {
		if waits, err := sh.AwaitEscrow(t.Context(), group); waits || !errors.Is(err, errAway) {
			t.Errorf("waits %t, %v", waits, err)
		}
	}
	said := sh.said.Of(v1alpha1.ReasonDeletionWaits)
	if len(said) != 1 || !strings.Contains(said[0], errAway.Error()) || !strings.Contains(said[0], "at the latest") {
		t.Errorf("said %v", sh.said.List)
	}
	sh.Waits.Over(&scope.Scope{Key: scopetest.Key}, waitForKeyrings)
	sh.Waits.SinceFirst(&scope.Scope{Key: scopetest.Key, Now: time.Now().Add(-escrowPatience(group))}, waitForKeyrings)
	for range 2 {
		if waits, err := sh.AwaitEscrow(t.Context(), group); waits || err != nil {
			t.Errorf("once the patience is over: waits %t, %v", waits, err)
		}
	}
	if left := sh.said.Of(v1alpha1.ReasonKeyringLeftBehind); len(left) != 1 || !strings.Contains(left[0], errAway.Error()) {
		t.Errorf("said %v", sh.said.List)
	}
	// Who can look, and finds nothing that is in a pod alone, says nothing.
	sh.rest.observes, sh.said.List = nil, nil
	if waits, err := sh.AwaitEscrow(t.Context(), group); waits || err != nil || len(sh.said.List) != 0 {
		t.Errorf("waits %t, %v; said %v", waits, err, sh.said.List)
	}
}

// I9: a deletion waits for what is in a pod alone from when it was first seen, and says for what and until when, once. The loop goes on
// that vouches for the pod.
func TestADeletionWaitsForWhatIsInAPodAloneI9(t *testing.T) {
	g := newGoing(t)
	// An operator that was away, or whose clock is ahead of the API server's, has not waited for anything yet.
	g.group.DeletionTimestamp = new(metav1.NewTime(g.s.Now.Add(-time.Hour)))
	began := g.s.Now
	for i, at := range []time.Duration{0, time.Second, escrowPatience(g.group) - time.Second} {
		g.s.Now = began.Add(at)
		if waits, err := g.AwaitEscrow(t.Context(), g.group); !waits || err != nil {
			t.Errorf("I9: after %s: waits %t, %v", at, waits, err)
		}
		if g.ensured != i+1 {
			t.Errorf("the loop was asked for %d times in %d looks", g.ensured, i+1)
		}
	}
	said := g.said.Of(v1alpha1.ReasonDeletionWaits)
	if len(g.said.List) != 1 || len(said) != 1 {
		t.Fatalf("said %v", g.said.List)
	}
	for _, words := range []string{"the keyring of c is not known", "(c: its keyring is in its pod alone", "until 2026-11-27T12:10:00Z"} {
		if !strings.Contains(said[0], words) {
			t.Errorf("%q does not say %q", said[0], words)
		}
	}
	g.s.Now = began.Add(escrowPatience(g.group))
	for range 2 {
		if waits, err := g.AwaitEscrow(t.Context(), g.group); waits || err != nil {
			t.Errorf("once the patience is over: waits %t, %v", waits, err)
		}
	}
	left := g.said.Of(v1alpha1.ReasonKeyringLeftBehind)
	if len(g.said.List) != 2 || len(left) != 1 || !strings.Contains(left[0], "mysql-orders-c-data") || !strings.Contains(left[0], "in its pod alone") {
		t.Errorf("said %v", g.said.List)
	}
}

// A deletion waits only for what can come.
func TestADeletionWaitsOnlyForWhatCanCome(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("secrets"), "", nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tt := range map[string]struct {
		// secrets is what comes of making a Secret.
		secrets error
		happens func(*going)
		waits   bool
		err     error
	}{
		"a Secret could be made":   {nil, nil, true, nil},
		"the namespace ends":       {terminating, nil, false, nil},
		"the namespace is gone":    {apierrors.NewNotFound(corev1.Resource("namespaces"), "shop"), nil, false, nil},
		"it may be temporary":      {errAway, nil, true, nil},
		"all is in escrow":         {nil, (*going).seal, false, nil},
		"nobody can look at a pod": {nil, func(g *going) { g.escrow.fails["versions c"] = errAway }, false, errAway},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGoing(t)
			if tt.happens != nil {
				tt.happens(g)
			}
			store := g.store(t)
			g.Client = interceptor.NewClient(store, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if tt.secrets != nil {
						return tt.secrets
					}
					return c.Create(ctx, o, opts...)
				},
			})
			waits, err := g.AwaitEscrow(t.Context(), g.group)
			if waits != tt.waits || !errors.Is(err, tt.err) {
				t.Errorf("waits %t, %v", waits, err)
			}
			if said := len(g.said.Of(v1alpha1.ReasonDeletionWaits)) == 1; said != (tt.waits || tt.err != nil) || (g.ensured == 1) != tt.waits {
				t.Errorf("said %v; the loop was asked for %d times", g.said.List, g.ensured)
			}
			made := &corev1.SecretList{}
			if err := store.List(t.Context(), made); err != nil || len(made.Items) != 0 {
				t.Errorf("the question left %d Secrets behind, %v", len(made.Items), err)
			}
		})
	}
}

// Keyrings are kept for volumes that stay.
func TestWhoseKeyringsAreKept(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*shell, *v1alpha1.MysqlFailoverGroup)
		want   bool
	}{
		"its volumes stay": {func(*shell, *v1alpha1.MysqlFailoverGroup) {}, true},
		"they go too":      {func(_ *shell, g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = v1alpha1.DeletionDelete }, false},
		"not encrypted":    {func(_ *shell, g *v1alpha1.MysqlFailoverGroup) { g.Spec.EncryptionAtRest = nil }, false},
		"no listener":      {func(sh *shell, _ *v1alpha1.MysqlFailoverGroup) { sh.Escrow = nil }, false},
	} {
		g := newGoing(t)
		tt.change(g.shell, g.group)
		if got := g.KeepsKeyrings(g.group); got != tt.want {
			t.Errorf("%s: kept %t", name, got)
		}
	}
}

// A site that left the specification keeps its pod for what is in it alone, for as long as a keyring may take.
func TestARemovalWaitsForWhatIsInAPodAlone(t *testing.T) {
	over := func(g *going) { // the first look was long ago
		g.Waits.SinceFirst(g.s, WaitForKeyring("c"))
		g.s.Now = g.s.Now.Add(escrowPatience(g.group))
	}
	for name, tt := range map[string]struct {
		happens func(*going)
		waits   bool
		err     error
		said    v1alpha1.Reason
	}{
		"in its pod alone": {func(*going) {}, true, nil, v1alpha1.ReasonSiteRemovalRefused},
		"for almost too long": {func(g *going) {
			over(g)
			g.s.Now = g.s.Now.Add(-time.Second)
		}, true, nil, v1alpha1.ReasonSiteRemovalRefused},
		"for too long":        {over, false, nil, v1alpha1.ReasonKeyringLeftBehind},
		"in escrow":           {(*going).seal, false, nil, ""},
		"its volume goes too": {func(g *going) { g.group.Spec.DeletionPolicy = v1alpha1.DeletionDelete }, false, nil, ""},
		"nobody can look":     {func(g *going) { g.escrow.fails["versions c"] = errAway }, false, errAway, ""},
		"nobody could, for long": {func(g *going) {
			over(g)
			g.escrow.fails["versions c"] = errAway
		}, false, errAway, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGoing(t)
			g.group.Spec.Sites = g.group.Spec.Sites[:2]
			tt.happens(g)
			for range 2 {
				if waits, err := g.RemovalWaits(t.Context(), g.s, "c"); waits != tt.waits || !errors.Is(err, tt.err) {
					t.Errorf("waits %t, %v", waits, err)
				}
			}
			if tt.said == "" && len(g.said.List) != 0 || tt.said != "" && (len(g.said.List) != 1 || g.said.Count(tt.said) != 1) {
				t.Errorf("said %v", g.said.List)
			}
			if p := g.s.Progressing; (p != nil) != tt.waits || tt.waits && (p.Reason != v1alpha1.ReasonWaitingForKeyring || g.s.Again != scope.WhenMoving) {
				t.Errorf("progressing %+v, looked at again in %s", p, g.s.Again)
			}
		})
	}
}

// What is known of a site that left the specification is kept while it is there: without it nobody would take what its pod pushes.
func TestWhatIsGoneIsKnownWhileItIsThere(t *testing.T) {
	g := newGoing(t)
	g.group.Spec.Sites = g.group.Spec.Sites[:2]
	if out := gone(g.s); len(out) != 1 || out[0].Name != "c" || out[0].Round != 3 {
		t.Errorf("kept %+v", out)
	}
	delete(g.s.Deployments, "c")
	if out := gone(g.s); len(out) != 0 {
		t.Errorf("of what is not there any more: %+v", out)
	}
	g.group.Status.EncryptionAtRest = nil
	if out := gone(g.s); len(out) != 0 {
		t.Errorf("of a group without keyrings: %+v", out)
	}
}
