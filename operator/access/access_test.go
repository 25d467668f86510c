// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/render"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{key: key, cert: cert, pem: encode("CERTIFICATE", der)}
}

func (a authority) secret(t *testing.T, names ...string) *corev1.Secret {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: names, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-tls"},
		Data: map[string][]byte{
			"ca.crt": a.pem, "tls.crt": encode("CERTIFICATE", der), "tls.key": encode("PRIVATE KEY", private),
		},
	}
}

func TestCheckTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	names := []string{"mysql-orders-a.shop.svc", "mysql-orders-b.shop.svc"}
	with := func(change func(*corev1.Secret)) *corev1.Secret {
		s := ca.secret(t, names...)
		change(s)
		return s
	}
	tests := map[string]struct {
		secret *corev1.Secret
		at     time.Time
		want   error
	}{
		"good":            {ca.secret(t, names...), now, nil},
		"more names":      {ca.secret(t, append(names, "x")...), now, nil},
		"a name missing":  {ca.secret(t, names[0]), now, access.ErrTLSNames},
		"expired":         {ca.secret(t, names...), now.Add(2 * time.Hour), access.ErrTLSUnusable},
		"no authority":    {with(func(s *corev1.Secret) { delete(s.Data, "ca.crt") }), now, access.ErrTLSUnusable},
		"other authority": {with(func(s *corev1.Secret) { s.Data["ca.crt"] = other.pem }), now, access.ErrTLSUnusable},
		"other key":       {with(func(s *corev1.Secret) { s.Data["tls.key"] = ca.secret(t).Data["tls.key"] }), now, access.ErrTLSUnusable},
		"endless key":     {with(func(s *corev1.Secret) { s.Data["tls.key"] = append(s.Data["tls.key"], make([]byte, 1<<20)...) }), now, access.ErrTLSUnusable},
		"not PEM":         {with(func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("x") }), now, access.ErrTLSUnusable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := access.CheckTLS(tt.secret, names, tt.at); !errors.Is(got, tt.want) || (got == nil) != (tt.want == nil) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestATroubleIsTheSameAtEveryLook: the time of now in it would be another condition, and another event, every few seconds.
func TestATroubleIsTheSameAtEveryLook(t *testing.T) {
	names := []string{"mysql-orders-a.shop.svc"}
	secret := newAuthority(t).secret(t, names...)
	for what, at := range map[string]time.Time{"ended": now.Add(2 * time.Hour), "not begun": now.Add(-2 * time.Hour)} {
		first, then := access.CheckTLS(secret, names, at), access.CheckTLS(secret, names, at.Add(time.Second))
		if first == nil || then == nil || first.Error() != then.Error() || !strings.Contains(first.Error(), "the operator's clock") {
			t.Errorf("%s: %v, then %v", what, first, then)
		}
	}
}

// TestNobodyIsBelievedByAnEndlessKey: to verify with it would keep the operator busy for minutes, at every connection.
func TestNobodyIsBelievedByAnEndlessKey(t *testing.T) {
	ca := newAuthority(t)
	secret := ca.secret(t, "x")
	n := new(big.Int).Lsh(big.NewInt(1), 20_000)
	template := &x509.Certificate{SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "endless"}, IsCA: true, BasicConstraintsValid: true, NotBefore: now, NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537}, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	secret.Data["ca.crt"] = encode("CERTIFICATE", der)
	if _, err := access.ClientTLS(secret, "x"); !errors.Is(err, access.ErrSecretIncomplete) {
		t.Errorf("it is believed: %v", err)
	}
}

func group(tls bool) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	if tls {
		g.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"}
	}
	return g
}

// written counts what reader was given: what is stored again has another version.
var written atomic.Int64

func reader(objects ...client.Object) client.Client {
	for i, o := range objects {
		o, is := o.DeepCopyObject().(client.Object)
		if !is {
			panic("DeepCopyObject of a client.Object is none")
		}
		o.SetResourceVersion(strconv.FormatInt(1000+written.Add(1), 10))
		objects[i] = o
	}
	return fake.NewClientBuilder().WithObjects(objects...).Build()
}

func accounts() *corev1.Secret {
	return render.AccountsSecret(render.Input{Group: group(false)},
		render.Passwords{Operator: "po", Replication: "pr", Sidecar: "ps", Clone: "pc"})
}

func TestAccess(t *testing.T) {
	ctx := t.Context()
	a := access.New(reader(accounts()), reader(newAuthority(t).secret(t)))
	for name, tls := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			target, err := a.Site(ctx, group(tls), "paris", "10.1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			if target.Addr != "10.1.2.3:33062" || target.User != "mfg_operator" || target.Password != "po" {
				t.Errorf("target %s", target)
			}
			if (target.TLS != nil) != tls {
				t.Errorf("TLS %v", target.TLS)
			}
			host := render.Host("shop", "orders", "paris")
			if tls && (target.TLS.ServerName != host || target.TLS.InsecureSkipVerify || target.TLS.RootCAs == nil) {
				t.Errorf("the server is not verified: %+v", target.TLS)
			}
			source, err := a.Replication(ctx, group(tls), "paris")
			if err != nil {
				t.Fatal(err)
			}
			if source.Host != host || source.Port != 3306 || source.User != "mfg_replication" || source.Password != "pr" ||
				source.TLS != tls || (source.CA == render.TLSDir+"/ca.crt") != tls {
				t.Errorf("source %s %+v", source, source.CA)
			}
			donor, err := a.Donor(ctx, group(tls), "paris")
			if err != nil {
				t.Fatal(err)
			}
			if donor.Host != host || donor.Port != 3306 || donor.User != "mfg_clone" || donor.Password != "pc" || donor.RequireTLS != tls {
				t.Errorf("donor %s", donor)
			}
		})
	}
}

func TestAccessWithoutSecrets(t *testing.T) {
	incomplete := accounts()
	delete(incomplete.Data, "operator")
	delete(incomplete.Data, "operator"+v1alpha1.PasswordKnown)
	noCA := newAuthority(t).secret(t)
	delete(noCA.Data, "ca.crt")
	tests := map[string]struct {
		secrets client.Reader
		want    error
	}{
		"no accounts":         {reader(), nil},
		"incomplete accounts": {reader(incomplete), access.ErrSecretIncomplete},
		"no certificate":      {reader(accounts()), nil},
		"no authority":        {reader(accounts(), noCA), access.ErrSecretIncomplete},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := access.New(tt.secrets, tt.secrets).Site(t.Context(), group(true), "paris", "10.1.2.3")
			if err == nil || (tt.want != nil && !errors.Is(err, tt.want)) {
				t.Fatalf("got %v", err)
			}
			for _, secret := range []string{"po", "pr", "pc", "PRIVATE"} {
				if strings.Contains(err.Error(), "\""+secret) {
					t.Errorf("a secret is in the error: %v", err)
				}
			}
		})
	}
}

type failing struct{ client.Reader }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("the API server is away")
}

// A failover must go on while the API server is away: what was read once is enough.
func TestAccessKeepsWhatItRead(t *testing.T) {
	secrets := &switching{Reader: reader(accounts(), newAuthority(t).secret(t))}
	a := access.New(secrets, secrets)
	synctest.Test(t, func(t *testing.T) {
		for _, away := range []bool{false, true} {
			if away {
				secrets.Reader = failing{}
				time.Sleep(time.Hour)
			}
			if _, err := a.Site(t.Context(), group(true), "paris", "10.1.2.3"); err != nil {
				t.Errorf("away %v: %v", away, err)
			}
		}
	})
}

// TestASecretThatIsGoneIsRememberedWhileItsGroupLives: servers go on to take the passwords of a Secret that somebody deleted by mistake.
// Nobody could fail over without it, so it is used further, and said once.
func TestASecretThatIsGoneIsRememberedWhileItsGroupLives(t *testing.T) {
	secrets := &switching{Reader: reader(accounts(), newAuthority(t).secret(t))}
	a := access.New(secrets, secrets)
	var said []string
	ctx := log.IntoContext(context.Background(), funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{}))
	living, other := group(true), group(true)
	living.UID, other.UID = "living", "made again under the same name"
	asks := func(g *v1alpha1.MysqlFailoverGroup) error {
		target, err := a.Site(ctx, g, "paris", "10.1.2.3")
		if err == nil && target.Password != "po" {
			t.Errorf("password of another: %s", target)
		}
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		if err := asks(living); err != nil {
			t.Fatal(err)
		}
		secrets.Reader = reader()
		for range 3 {
			time.Sleep(time.Hour)
			if err := asks(living); err != nil {
				t.Errorf("nobody connects any more: %v", err)
			}
		}
		if len(said) != 2 || !strings.Contains(said[0], "mysql-orders-accounts") || !strings.Contains(said[1], "orders-tls") {
			t.Errorf("each of two Secrets is to be told of once: %q", said)
		}
		if strings.Contains(strings.Join(said, ""), `"po"`) {
			t.Error("I11: a password is in the log")
		}
		if err := asks(other); err == nil {
			t.Error("a group that was made again is reached with the passwords of the one before")
		}
		// It is read again soon after it is back, and told of again if it goes once more.
		secrets.Reader = reader(accounts(), newAuthority(t).secret(t))
		time.Sleep(access.SecretAge)
		if err := asks(living); err != nil {
			t.Error(err)
		}
		secrets.Reader = reader()
		time.Sleep(time.Hour)
		if err := asks(living); err != nil || len(said) != 4 {
			t.Errorf("%v; said %q", err, said)
		}
		a.Forget(client.ObjectKeyFromObject(living))
		if err := asks(living); err == nil {
			t.Error("it outlives its group")
		}
	})
}

// TestAnEmptiedSecretIsRememberedLikeOneThatIsGone: its object is there, and the servers go on to take what it held. What it still holds, and
// what is written into it again counts.
func TestAnEmptiedSecretIsRememberedLikeOneThatIsGone(t *testing.T) {
	host := render.Host("shop", "orders", "paris")
	for name, tc := range map[string]struct {
		empty func(accounts, tls *corev1.Secret)
		said  []string
	}{
		"whole":               {func(_, _ *corev1.Secret) {}, nil},
		"no data":             {func(a, _ *corev1.Secret) { a.Data = nil }, []string{"operator, replication, clone"}},
		"no data anywhere":    {func(a, tls *corev1.Secret) { a.Data, tls.Data = nil, map[string][]byte{} }, []string{"operator, replication, clone", "ca.crt"}},
		"an account":          {func(a, _ *corev1.Secret) { delete(a.Data, "operator"); delete(a.Data, "operator-known") }, []string{"operator"}},
		"empty values":        {func(a, _ *corev1.Secret) { a.Data["replication"], a.Data["replication-known"] = []byte{}, nil }, []string{"replication"}},
		"only the former one": {func(a, _ *corev1.Secret) { a.Data = map[string][]byte{"operator-previous": []byte("former")} }, []string{"operator, replication, clone"}},
		"only the copy":       {func(a, _ *corev1.Secret) { delete(a.Data, "operator-known") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tls := newAuthority(t).secret(t, host)
			secrets := &switching{Reader: reader(accounts(), tls)}
			a := access.New(secrets, secrets)
			var said []string
			ctx := log.IntoContext(context.Background(), funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{}))
			ask := func() {
				t.Helper()
				target, err := a.Site(ctx, group(true), "paris", "10.1.2.3")
				if err != nil || target.Password != "po" {
					t.Errorf("the operator reaches no server: %v, %s", err, target)
				}
				source, err := a.Replication(ctx, group(true), "paris")
				if err != nil || source.Password != "pr" || source.Serial != 1 {
					t.Errorf("no site can follow another: %v, %s", err, source)
				}
				if donor, err := a.Donor(ctx, group(true), "paris"); err != nil || donor.Password != "pc" {
					t.Errorf("no site can be cloned: %v, %s", err, donor)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				ask()
				left, tlsLeft := accounts(), tls.DeepCopy()
				tc.empty(left, tlsLeft)
				secrets.Reader = reader(left, tlsLeft)
				for range 3 {
					time.Sleep(time.Hour)
					ask()
				}
				for i, want := range tc.said {
					if len(said) != len(tc.said) || !strings.Contains(said[i], `"keys"="`+want+`"`) {
						t.Errorf("%q is to be told of, each once: %q", tc.said, said)
					}
				}
				if len(tc.said) == 0 && len(said) > 0 || strings.Contains(strings.Join(said, ""), `"po"`) {
					t.Errorf("said %q", said)
				}
				// What is restored counts, also if it is another password.
				restored := accounts()
				restored.Data["operator"], restored.Data["operator-known"] = []byte("anew"), []byte("anew")
				secrets.Reader = reader(restored, tls)
				time.Sleep(access.SecretAge)
				if target, err := a.Site(ctx, group(true), "paris", "10.1.2.3"); err != nil || target.Password != "anew" {
					t.Errorf("what was restored does not count: %v, %s", err, target)
				}
			})
		})
	}
}

// TestAReplacedAuthorityIsTrustedForAWhile: mysqld shows the former certificate until kubelet and sidecar have given it the
// new one.
func TestAReplacedAuthorityIsTrustedForAWhile(t *testing.T) {
	host := render.Host("shop", "orders", "paris")
	former, next := newAuthority(t), newAuthority(t)
	secrets := &switching{Reader: reader(accounts(), former.secret(t, host))}
	a := access.New(secrets, secrets)
	trusts := func(t *testing.T, who authority) bool {
		t.Helper()
		target, err := a.Site(t.Context(), group(true), "paris", "10.1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		_, err = who.cert.Verify(x509.VerifyOptions{Roots: target.TLS.RootCAs, CurrentTime: now})
		return err == nil
	}
	synctest.Test(t, func(t *testing.T) {
		if !trusts(t, former) || trusts(t, next) {
			t.Error("before the change")
		}
		secrets.Reader = reader(accounts(), next.secret(t, host))
		time.Sleep(time.Minute)
		if !trusts(t, former) || !trusts(t, next) {
			t.Error("after the change only one of them is trusted")
		}
		time.Sleep(time.Minute)
		if !trusts(t, former) {
			t.Error("the former authority is not trusted any more after it was read again")
		}
		time.Sleep(10 * time.Minute)
		if trusts(t, former) || !trusts(t, next) {
			t.Error("the former authority is trusted for ever")
		}
	})
}

type switching struct{ client.Reader }

// TestPasswordsInTurn: while a password is replaced, or was edited, every one of the Secret is tried, and again once all were refused.
func TestPasswordsInTurn(t *testing.T) {
	secret := accounts()
	secret.Data["operator"], secret.Data["operator-next"], secret.Data["operator-previous"] = []byte("edited"), []byte("next"), []byte("former")
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	target, err := access.New(c, c).Site(t.Context(), group(false), "paris", "10.1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(target.Passwords(t.Context(), false), " "); got != "po edited next former" || target.Password != "po" {
		t.Errorf("tried: %s, first %s", got, target.Password)
	}
	secret.Data["operator-next"] = []byte("newer")
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(target.Passwords(t.Context(), true), " "); got != "newer" {
		t.Errorf("tried anew: %s", got)
	}
}
