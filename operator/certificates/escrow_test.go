// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-mfg/mfg/operator/certs"
)

// logged is a log that several goroutines write.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newEscrow(t *testing.T, leads bool, conflicts *int, objects ...client.Object) (*Escrow, client.Client, *logged) {
	t.Helper()
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if conflicts != nil && *conflicts > 0 {
				*conflicts--
				return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, o.GetName(), nil)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	leading := make(chan struct{})
	if leads {
		close(leading)
	}
	log := &logged{}
	return NewEscrow(EscrowOptions{
		Client: c, Live: c, Log: slog.New(slog.NewTextHandler(log, nil)), Namespace: "mfg-system", Service: "mfg-auxiliary", Leading: leading,
	}), c, log
}

// believed checks that whoever trusts the bundle believes the listener under the name that sidecars ask for.
func believed(t *testing.T, e *Escrow) {
	t.Helper()
	shown, err := e.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.Bundle())
	if _, err := shown.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "mfg-auxiliary.mfg-system.svc"}); err != nil {
		t.Error(err)
	}
}

func secret(t *testing.T, c client.Client, name string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "mfg-system", Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheListenerGetsACertificate(t *testing.T) {
	e, c, log := newEscrow(t, true, nil)
	if _, err := e.GetCertificate(nil); err == nil || e.Bundle() != nil {
		t.Error("a certificate before there is one")
	}
	if err := e.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	believed(t, e)
	if strings.Contains(log.String(), "PRIVATE") || len(secret(t, c, EscrowCertificate).Data[certs.KeyPrivate]) > 0 {
		t.Error("a key is where it must not be")
	}
	before := string(e.Bundle())
	// Another operator finds what the first one made, before it leads and after.
	for _, leads := range []bool{false, true} {
		other, _, _ := newEscrow(t, leads, nil, secret(t, c, EscrowAuthority), secret(t, c, EscrowCertificate))
		if err := other.look(t.Context()); err != nil || string(other.Bundle()) != before {
			t.Errorf("leads %t: %v", leads, err)
		}
	}
}

func TestWhoDoesNotLeadWritesNothing(t *testing.T) {
	e, c, _ := newEscrow(t, false, nil)
	if err := e.look(t.Context()); err == nil {
		t.Error("no error")
	}
	var list corev1.SecretList
	if err := c.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
		t.Errorf("%v, %d Secrets", err, len(list.Items))
	}
}

func TestASecretOfSomebodyElseIsLeftAlone(t *testing.T) {
	for _, name := range []string{EscrowAuthority, EscrowCertificate} {
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: name}, Data: map[string][]byte{"theirs": []byte("hunter2")}}
		for _, leads := range []bool{true, false} {
			e, c, _ := newEscrow(t, leads, nil, theirs)
			if err := e.look(t.Context()); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", name, err)
			}
			if s := secret(t, c, name); len(s.Data) != 1 {
				t.Errorf("%s was written over", name)
			}
		}
	}
}

// Whoever writes meanwhile is not written over: the next look decides on what then stands. A damaged authority leaves what is shown.
func TestTheListenerGoesOn(t *testing.T) {
	conflicts := 0
	e, c, log := newEscrow(t, true, &conflicts)
	if err := e.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := secret(t, c, EscrowCertificate)
	s.Data[certs.KeyBundle] = nil
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	conflicts = 1
	if err := e.look(t.Context()); !overtaken(err) {
		t.Errorf("%v", err)
	}
	believed(t, e)
	if err := e.look(t.Context()); err != nil {
		t.Error(err)
	}
	believed(t, e)
	s = secret(t, c, EscrowAuthority)
	s.Data = map[string][]byte{certs.KeyAuthority: []byte("hunter2")}
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := e.look(t.Context()); err != nil {
		t.Error(err)
	}
	believed(t, e)
	if !strings.Contains(log.String(), "damaged") || strings.Contains(log.String(), "hunter2") {
		t.Error(log.String())
	}
	// Deleted, another one is made, and the former is believed until sidecars know the new one.
	if err := c.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := e.look(t.Context()); err != nil {
		t.Error(err)
	}
	believed(t, e)
}

func TestTheListenerIsLookedAfterUntilTheEnd(t *testing.T) {
	e, _, _ := newEscrow(t, true, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Start(ctx) }()
	for end := time.Now().Add(10 * time.Second); e.Bundle() == nil && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	cancel()
	if err := <-ended; err != nil || e.Bundle() == nil {
		t.Errorf("%v", err)
	}
	if e.NeedLeaderElection() {
		t.Error("who does not lead shows nothing")
	}
}

// TestAnAuthorityThatCannotSignIsTold, and no certificate after the other is written, of which none is good.
func TestAnAuthorityThatCannotSignIsTold(t *testing.T) {
	e, c, log := newEscrow(t, true, nil)
	if err := e.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := secret(t, c, EscrowAuthority)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certs.AuthorityLife), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{"elsewhere.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	held.Data[certs.KeyAuthority] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	held.Data[certs.KeyPrivate] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	if err := c.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	before := secret(t, c, EscrowCertificate).ResourceVersion
	if err := e.look(t.Context()); err != nil {
		t.Error(err)
	}
	if after := secret(t, c, EscrowCertificate).ResourceVersion; after != before {
		t.Errorf("written at %s, and at %s before", after, before)
	}
	if !strings.Contains(log.String(), "delete its Secret") {
		t.Error("nobody is told:", log)
	}
}
