// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// own is the Lease with which the operator of these tests leads.
const own = "mfg/mfg-operator"

// claim has a release operate a group of namespace n.
func (l *land) claim(name, lease string) {
	l.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	l.must(l.c.Get(l.t.Context(), types.NamespacedName{Namespace: "n", Name: name}, g))
	g.Status.Claim = &v1alpha1.GroupClaim{Lease: lease}
	l.must(l.c.Status().Update(l.t.Context(), g))
}

// A group that was handed to another release in its turn is never seen by this version again. Its turn goes to the next group, once, and it
// is given none while it is the other's.
func TestAGroupOfAnotherReleaseHasNoTurn(t *testing.T) {
	l := newLand(t, 2)
	var logged bytes.Buffer
	k := l.keeper(l.c)
	k.Own, k.Log = own, slog.New(slog.NewTextHandler(&logged, nil))
	look := func() string {
		l.now = l.now.Add(5 * time.Second)
		l.must(k.Look(t.Context()))
		return fmt.Sprint(having(k, 2))
	}
	l.claim("g0", own)
	if now := look(); now != "[g0]" {
		t.Fatalf("%s has the turn", now)
	}
	// The other release has not looked at it yet: status still says that pods are behind this version.
	l.claim("g0", "blue/mfg-operator")
	for _, want := range []string{"[]", "[g1]", "[g1]", "[g1]"} {
		if now := look(); now != want {
			t.Errorf("%s has the turn, want %s", now, want)
		}
	}
	if n := strings.Count(logged.String(), "operated under Lease blue/mfg-operator"); n != 1 {
		t.Errorf("said %d times: %s", n, logged.String())
	}
	l.status("g1", false, "r2")
	for range 10 {
		if now := look(); now == "[g0]" {
			t.Fatal("a group of another release has the turn")
		}
	}
	l.claim("g0", own)
	if now := look(); now != "[g0]" {
		t.Errorf("%s has the turn after the group came back", now)
	}
}

// Without a Lease the operator never claims a group, so a claim that was left behind says nothing of whose the group is.
func TestAClaimCountsOnlyBesideALease(t *testing.T) {
	l := newLand(t, 1)
	l.claim("g0", "blue/mfg-operator")
	k := l.keeper(l.c)
	l.must(k.Look(t.Context()))
	if now := fmt.Sprint(having(k, 1)); now != "[g0]" {
		t.Errorf("%s has the turn", now)
	}
}

// guarded is an API server that lets nobody read groups of a namespace.
type guarded struct {
	client.Client
	namespace string
	err       error
}

func (g guarded) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, is := obj.(*v1alpha1.MysqlFailoverGroup); is && key.Namespace == g.namespace {
		return g.err
	}
	return g.Client.Get(ctx, key, obj, opts...)
}

// A holder in a namespace that is not watched any more cannot be read for ever. A holder that merely cannot be read keeps its turn, whatever
// the API server says.
func TestTheHolderIsOutOfReach(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "mysqlfailovergroups"}, "g0", nil)
	for name, tc := range map[string]struct {
		watched []string
		err     error
		want    string
	}{
		"not watched any more":          {[]string{"m"}, forbidden, "[h0]"},
		"watched, and not to be read":   {[]string{"m", "n"}, forbidden, "[g0]"},
		"all are watched, and it fails": {nil, errors.New("timeout"), "[g0]"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLand(t, 1)
			l.must(l.keeper(l.c).Look(t.Context()))
			h := &v1alpha1.MysqlFailoverGroup{}
			l.must(l.c.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "g0"}, h))
			h.ObjectMeta = metav1.ObjectMeta{Namespace: "m", Name: "h0"}
			status := h.Status
			l.must(l.c.Create(t.Context(), h))
			h.Status = status
			l.must(l.c.Status().Update(t.Context(), h))
			k := l.keeper(l.c)
			k.Live, k.Namespaces = guarded{l.c, "n", tc.err}, tc.watched
			for range 3 {
				l.now = l.now.Add(5 * time.Second)
				if err := k.Look(t.Context()); (err != nil) != (tc.want == "[g0]") {
					t.Errorf("error %v", err)
				}
			}
			now := having(k, 1)
			if k.Has(types.NamespacedName{Namespace: "m", Name: "h0"}) {
				now = append(now, "h0")
			}
			if fmt.Sprint(now) != tc.want {
				t.Errorf("%v has the turn, want %s", now, tc.want)
			}
		})
	}
}
