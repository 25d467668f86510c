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
	"github.com/mysql-mfg/mfg/operator/render"
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

func deletes(g *going) { g.group.Spec.DeletionPolicy = v1alpha1.DeletionDelete }

// volumeOf has the volume of a site be there, which the group made or people prepared.
func volumeOf(t *testing.T, site string, prepared bool) func(*going) {
	return func(g *going) {
		v := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: v1alpha1.DataVolumeName(scopetest.Key.Name, site),
			Labels: render.SiteLabels(scopetest.Key.Name, site)}}
		if prepared {
			v.Annotations = map[string]string{v1alpha1.AnnotationPrepared: "true"}
		}
		if err := g.Client.Create(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

// noVolumeIsRead has every look at a volume fail.
func noVolumeIsRead(t *testing.T) func(*going) {
	return func(g *going) {
		g.Live = interceptor.NewClient(g.store(t), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, is := o.(*corev1.PersistentVolumeClaim); is {
					return errAway
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
	}
}

// I17: keyrings are kept for volumes that stay, and a volume that people prepared stays with any deletion policy.
func TestWhoseKeyringsAreKeptI17(t *testing.T) {
	leaves := func(g *going) { g.group.Spec.Sites = g.group.Spec.Sites[:2] }
	for name, tt := range map[string]struct {
		happens []func(*going)
		want    bool
		err     error
	}{
		"its volumes stay":             {nil, true, nil},
		"nothing has to be read":       {[]func(*going){noVolumeIsRead(t)}, true, nil},
		"they go too":                  {[]func(*going){deletes}, false, nil},
		"the group made them":          {[]func(*going){deletes, volumeOf(t, "a", false), volumeOf(t, "c", false)}, false, nil},
		"one was prepared":             {[]func(*going){deletes, volumeOf(t, "a", false), volumeOf(t, "c", true)}, true, nil},
		"of a site that left":          {[]func(*going){deletes, leaves, volumeOf(t, "c", true)}, true, nil},
		"before any keyring was known": {[]func(*going){deletes, volumeOf(t, "a", true), func(g *going) { g.group.Status.EncryptionAtRest = nil }}, true, nil},
		"nobody can look":              {[]func(*going){deletes, noVolumeIsRead(t)}, false, errAway},
		"not encrypted":                {[]func(*going){volumeOf(t, "c", true), func(g *going) { g.group.Spec.EncryptionAtRest = nil }}, false, nil},
		"no listener":                  {[]func(*going){volumeOf(t, "c", true), func(g *going) { g.Escrow = nil }}, false, nil},
	} {
		g := newGoing(t)
		for _, happens := range tt.happens {
			happens(g)
		}
		if got, err := g.KeepsKeyrings(t.Context(), g.group); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("I17: %s: kept %t, %v", name, got, err)
		}
	}
}

// I17: with the volumes that go no keyring is waited for, with those that people prepared it is.
func TestADeletionWaitsForThePreparedAloneI17(t *testing.T) {
	for name, tt := range map[string]struct {
		happens func(*going)
		waits   bool
	}{
		"its volume goes":      {volumeOf(t, "c", false), false},
		"it has no volume":     {func(*going) {}, false},
		"its volume stays":     {volumeOf(t, "c", true), true},
		"another volume stays": {volumeOf(t, "b", true), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGoing(t)
			deletes(g)
			tt.happens(g)
			if waits, err := g.AwaitEscrow(t.Context(), g.group); waits != tt.waits || err != nil {
				t.Errorf("I17: waits %t, %v", waits, err)
			}
			said := g.said.Of(v1alpha1.ReasonDeletionWaits)
			if tt.waits != (len(said) == 1) || tt.waits && !strings.Contains(said[0], "the keyring of c is not known") {
				t.Errorf("said %v", g.said.List)
			}
		})
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
		"for too long": {over, false, nil, v1alpha1.ReasonKeyringLeftBehind},
		"in escrow":    {(*going).seal, false, nil, ""},
		"its volume goes too": {func(g *going) {
			deletes(g)
			volumeOf(t, "c", false)(g)
		}, false, nil, ""},
		"its volume was prepared (I17)": {func(g *going) {
			deletes(g)
			volumeOf(t, "c", true)(g)
		}, true, nil, v1alpha1.ReasonSiteRemovalRefused},
		"nobody can look at its volume": {func(g *going) {
			deletes(g)
			noVolumeIsRead(t)(g)
		}, false, errAway, ""},
		"not encrypted":   {func(g *going) { g.group.Spec.EncryptionAtRest = nil }, false, nil, ""},
		"no listener":     {func(g *going) { g.Escrow = nil }, false, nil, ""},
		"nobody can look": {func(g *going) { g.escrow.fails["versions c"] = errAway }, false, errAway, ""},
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
