// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiclient "github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// keyReader is an API server that knows the Secret with a group's key.
type keyReader struct {
	client.Reader
	key atomic.Pointer[signing.Key]
}

func (r *keyReader) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	secret, ok := obj.(*corev1.Secret)
	key := r.key.Load()
	if !ok || key == nil {
		return errors.New("away")
	}
	der, err := x509.MarshalPKCS8PrivateKey(key.Private)
	if err != nil {
		return err
	}
	chain, err := json.Marshal(key.Chain)
	secret.Data = map[string][]byte{
		v1alpha1.AuthorityPrivateKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), v1alpha1.AuthorityChain: chain,
	}
	return err
}

func newKey(t *testing.T) signing.Key {
	t.Helper()
	key, err := signing.New()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// nextKey is one that a key vouches for.
func nextKey(t *testing.T, former signing.Key) signing.Key {
	t.Helper()
	key := newKey(t)
	key.Chain = former.Vouch(key.Public())
	return key
}

// trusting are sites whose sidecars trust a key.
func trusting(key signing.Key) []failover.Site {
	var sites []failover.Site
	for _, name := range []string{"east", "south", "west"} {
		r := wire.Report{Anchor: wire.EncodeKey(key.Public())}
		sites = append(sites, failover.Site{Name: name, Sidecar: failover.Sidecar{Answered: true, Report: r}})
	}
	return sites
}

// TestAKeySignsOnlyOnceEverySiteTakesItI4: a site that nothing leads to the key takes no statement, and is fenced when its lease ends.
func TestAKeySignsOnlyOnceEverySiteTakesItI4(t *testing.T) {
	former := newKey(t)
	next, stranger := nextKey(t, former), newKey(t)
	change := func(change func(*failover.Snapshot)) failover.Snapshot {
		s := failover.Snapshot{Sites: trusting(former)}
		change(&s)
		return s
	}
	gone := failover.Site{Name: "gone", Removed: true}
	leaving := gone
	leaving.Pod.Exists = true
	for name, tc := range map[string]struct {
		seen  failover.Snapshot
		next  signing.Key
		signs bool
	}{
		"every site takes it":                    {change(func(*failover.Snapshot) {}), next, true},
		"nobody vouches for it":                  {change(func(*failover.Snapshot) {}), stranger, false},
		"one trusts another key":                 {change(func(s *failover.Snapshot) { s.Sites[1] = trusting(stranger)[1] }), next, false},
		"one is of the version before":           {change(func(s *failover.Snapshot) { s.Sites[1].Sidecar.Report.Anchor = "" }), next, false},
		"one cannot be asked":                    {change(func(s *failover.Snapshot) { s.Sites[2].Sidecar = failover.Sidecar{} }), next, false},
		"one has it already and takes no former": {change(func(s *failover.Snapshot) { s.Sites[2].Sidecar = deaf(next) }), next, true},
		"one takes no former, and has another":   {change(func(s *failover.Snapshot) { s.Sites[2].Sidecar = deaf(stranger) }), next, false},
		"the role moves":                         {change(func(s *failover.Snapshot) { s.Status.Transition = &failover.Transition{} }), next, false},
		"a removed site whose pod is gone":       {change(func(s *failover.Snapshot) { s.Sites = append(s.Sites, gone) }), next, true},
		"a removed site whose pod is there":      {change(func(s *failover.Snapshot) { s.Sites = append(s.Sites, leaving) }), next, false},
	} {
		l := testLoop(t, &pushes{}, nil)
		l.signer.use(former)
		l.signer.next = &tc.next
		l.signer.take(tc.seen)
		l.authority.Set(statement("east", 1, false), nil, time.Now())
		signed, err := l.authority.Sign(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		want := former
		if tc.signs {
			want = tc.next
		}
		if _, by, err := wire.VerifyBy(former.Public(), signed); err != nil || !by.Equal(want.Public()) || !want.Private.Equal(l.signer.inUse.Private) {
			t.Errorf("I4: %s: the new key signs is not %t: %v", name, tc.signs, err)
		}
	}
}

func deaf(key signing.Key) failover.Sidecar {
	return failover.Sidecar{Deaf: true, Report: wire.Report{Anchor: wire.EncodeKey(key.Public())}}
}

// deafSite is a sidecar that takes no statement, and reports if it is given none.
type deafSite struct{ key signing.Key }

func (d deafSite) PushActiveSite(_ context.Context, _ string, push wire.ActiveSite) (wire.Answer, error) {
	if push.Statement != "" {
		return wire.Answer{}, &apiclient.StatusError{Code: 401, Reason: wire.ReasonBadStatement}
	}
	left := int64(7000)
	return wire.Answer{Report: wire.Report{
		Site: "east", PodUID: "pod-1", Epoch: 9, Answered: true, SuperReadOnly: true, Anchor: wire.EncodeKey(d.key.Public()), LeaseMillis: &left,
	}}, nil
}

// TestASiteThatTakesNoStatementProvesNothingI1: it opens on nothing, and acknowledges nothing. For how long it may be open it does say,
// so that it is not taken for one that nobody fences (I4).
func TestASiteThatTakesNoStatementProvesNothingI1(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-1"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	key := newKey(t)
	l := testLoop(t, deafSite{key}, nil)
	got := l.client.push(t.Context(), nil, asking{pod, "east", "signed with another key"})
	if got.Answered || !got.Deaf || got.Report.FencedUnder(9) || got.Report.Epoch != 0 || got.Report.Answered {
		t.Errorf("I1: %+v", got)
	}
	if got.Report.LeaseMillis == nil || *got.Report.LeaseMillis != 7000 || got.Report.Anchor != wire.EncodeKey(key.Public()) || got.At.IsZero() {
		t.Errorf("I4: %+v", got)
	}
	views := []failover.View{{Name: "east"}}
	if l.client.tellRefusals(views); !strings.Contains(views[0].Message, "takes no statement") {
		t.Errorf("message %q", views[0].Message)
	}
	pod.UID = "pod-2"
	if got := l.client.push(t.Context(), nil, asking{pod, "east", "signed with another key"}); got.Deaf {
		t.Errorf("I12: another pod has said it: %+v", got)
	}
}

// TestTheKeyInTheSecretIsLookedAtAgain, and an API server that is away holds nothing up and changes nothing.
func TestTheKeyInTheSecretIsLookedAtAgain(t *testing.T) {
	former := newKey(t)
	next := nextKey(t, former)
	api := &keyReader{}
	api.key.Store(&former)
	l := testLoop(t, &pushes{}, api)
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	l.signer.use(former)
	look := func() *signing.Key {
		t.Helper()
		l.signer.read = time.Now().Add(-keyAge)
		l.signer.look(t.Context(), group)
		for deadline := time.Now().Add(5 * time.Second); api.key.Load() != nil && len(l.signer.found) == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		l.signer.look(t.Context(), group)
		return l.signer.next
	}
	if got := look(); got != nil {
		t.Error("the key in use counts as another")
	}
	api.key.Store(&next)
	if got := look(); got == nil || !next.Private.Equal(got.Private) || !got.Chain.Has(former.Public()) {
		t.Error("the new key was not found, or not what leads to it")
	}
	api.key.Store(nil)
	if got := look(); got == nil || !next.Private.Equal(got.Private) {
		t.Error("without an answer the key that was found is forgotten")
	}
	api.key.Store(&former)
	if got := look(); got != nil {
		t.Error("a key that was put back still waits")
	}
}
