// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// keyReader is an API server that knows the Secret with a group's key.
type keyReader struct {
	client.Reader
	key atomic.Pointer[ed25519.PrivateKey]
}

func (r *keyReader) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	secret, ok := obj.(*corev1.Secret)
	key := r.key.Load()
	if !ok || key == nil {
		return errors.New("away")
	}
	der, err := x509.MarshalPKCS8PrivateKey(*key)
	secret.Data = map[string][]byte{v1alpha1.AuthorityPrivateKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
	return err
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// trusting are sites whose sidecars trust these keys.
func trusting(keys ...ed25519.PrivateKey) []failover.Site {
	var ids []string
	for _, key := range keys {
		ids = append(ids, wire.KeyID(publicOf(key)))
	}
	var sites []failover.Site
	for _, name := range []string{"east", "south", "west"} {
		sites = append(sites, failover.Site{Name: name, Sidecar: failover.Sidecar{Answered: true, Report: wire.Report{Trusts: ids}}})
	}
	return sites
}

// TestAKeySignsOnlyOnceEverySiteTrustsIt covers I4 from the other side: a site that does not know the key takes no
// statement, and is fenced when its lease ends.
func TestAKeySignsOnlyOnceEverySiteTrustsIt(t *testing.T) {
	former, next := newKey(t), newKey(t)
	change := func(change func(*failover.Snapshot)) failover.Snapshot {
		s := failover.Snapshot{Sites: trusting(former, next)}
		change(&s)
		return s
	}
	gone := failover.Site{Name: "gone", Removed: true}
	leaving := gone
	leaving.Pod.Exists = true
	for name, tc := range map[string]struct {
		seen  failover.Snapshot
		signs bool
	}{
		"every site trusts it":              {change(func(*failover.Snapshot) {}), true},
		"nobody does":                       {failover.Snapshot{Sites: trusting(former)}, false},
		"one does not":                      {change(func(s *failover.Snapshot) { s.Sites[1].Sidecar.Report.Trusts = nil }), false},
		"one cannot be asked":               {change(func(s *failover.Snapshot) { s.Sites[2].Sidecar.Answered = false }), false},
		"the role moves":                    {change(func(s *failover.Snapshot) { s.Status.Transition = &failover.Transition{} }), false},
		"a removed site whose pod is gone":  {change(func(s *failover.Snapshot) { s.Sites = append(s.Sites, gone) }), true},
		"a removed site whose pod is there": {change(func(s *failover.Snapshot) { s.Sites = append(s.Sites, leaving) }), false},
	} {
		l := testLoop(t, &pushes{}, nil)
		l.signWith(former)
		l.signer.next = next
		l.takeKey(tc.seen)
		l.authority.Set(statement("east", 1, false), time.Now())
		signed, err := l.authority.Sign(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		want := former
		if tc.signs {
			want = next
		}
		if _, err := wire.Verify(publicOf(want), signed); err != nil || !publicOf(want).Equal(l.signer.inUse) {
			t.Errorf("%s: the new key signs is not %t: %v", name, tc.signs, err)
		}
	}
}

// TestTheKeyInTheSecretIsLookedAtAgain, and an API server that is away holds nothing up and changes nothing.
func TestTheKeyInTheSecretIsLookedAtAgain(t *testing.T) {
	former, next := newKey(t), newKey(t)
	api := &keyReader{}
	api.key.Store(&former)
	l := testLoop(t, &pushes{}, api)
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	l.signWith(former)
	look := func() ed25519.PrivateKey {
		t.Helper()
		l.signer.read = time.Now().Add(-keyAge)
		l.lookForKey(t.Context(), group)
		for deadline := time.Now().Add(5 * time.Second); api.key.Load() != nil && len(l.signer.found) == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		l.lookForKey(t.Context(), group)
		return l.signer.next
	}
	if got := look(); got != nil {
		t.Error("the key in use counts as another")
	}
	api.key.Store(&next)
	if got := look(); !next.Equal(got) {
		t.Error("the new key was not found")
	}
	api.key.Store(nil)
	if got := look(); !next.Equal(got) {
		t.Error("without an answer the key that was found is forgotten")
	}
	api.key.Store(&former)
	if got := look(); got != nil {
		t.Error("a key that was put back still waits")
	}
}
