// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/escrow"
)

const (
	podUID = "0a52c1f0-3f0c-4f0e-9f4b-6a1f0d7e2b11"
	// keyData is searched for wherever it must not be.
	keyData = "5EC2E75EC2E75EC2E75EC2E75EC2E75E"
	keyring = `{"version":"1.0","elements":[{"user":"","data_id":"INNODBKey-x-1","data_type":"AES","data":"` + keyData + `","extension":[]}]}`
)

// vault is the escrow listener over TLS, with the real store over a cluster in memory: paris is unsealed, madrid sealed.
type vault struct {
	t       *testing.T
	escrow  *Escrow
	addr    string
	dir     string
	roots   *x509.CertPool
	cluster client.Client
	store   *escrow.Store
	group   *v1alpha1.MysqlFailoverGroup
	tokens  map[string]string
	round   int64
	log     *safeBuffer
	// ends is when the certificate that was read last ends.
	ends atomic.Pointer[time.Time]
}

// safeBuffer is a log that several goroutines write to.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func testLimits() escrowLimits {
	l := defaultEscrowLimits()
	l.readHeader, l.read, l.recheck, l.retry = 2*time.Second, 3*time.Second, 50*time.Millisecond, 50*time.Millisecond
	return l
}

func newVault(t *testing.T, l escrowLimits) *vault {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	v := &vault{t: t, dir: t.TempDir(), tokens: map[string]string{}, log: &safeBuffer{}, roots: x509.NewCertPool()}
	v.group = &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u"}}
	v.group.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{
		{Name: "paris", Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringBootstrap}, {Name: "madrid", Phase: v1alpha1.KeyringSealed},
	}}
	v.cluster = fake.NewClientBuilder().WithScheme(scheme).WithObjects(v.group).WithStatusSubresource(v.group).Build()
	v.store = escrow.New(escrow.Options{Client: v.cluster, Live: v.cluster, Pods: func(_, _, _ string) (string, bool) { return podUID, true }})
	for _, site := range []string{"paris", "madrid"} {
		v.renew(site)
	}
	v.escrow = newEscrow(v.store, slog.New(slog.NewTextHandler(v.log, &slog.HandlerOptions{Level: slog.LevelDebug})), l)
	v.certify("first")
	v.listen()
	return v
}

func (v *vault) renew(site string) {
	v.t.Helper()
	v.round++
	if err := v.store.RenewToken(v.t.Context(), v.group, site, v.round); err != nil {
		v.t.Fatal(err)
	}
	s := &corev1.Secret{}
	if err := v.cluster.Get(v.t.Context(), client.ObjectKey{Namespace: "shop", Name: v1alpha1.KeyringTokenSecret("orders", site)}, s); err != nil {
		v.t.Fatal(err)
	}
	v.tokens[site] = string(s.Data["token"])
}

// certify writes a new certificate with a name of its own, and trusts it.
func (v *vault) certify(name string) {
	v.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		v.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"mfg-auxiliary.mfg-system.svc"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		v.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		v.t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	v.roots.AppendCertsFromPEM(certificate)
	for file, content := range map[string][]byte{
		"tls.crt": certificate, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(v.dir, file), content, 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
}

func (v *vault) listen() {
	v.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		v.t.Fatal(err)
	}
	v.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(v.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- v.escrow.Serve(ctx, l, v.dir, func(c *x509.Certificate) { v.ends.Store(&c.NotAfter) })
	}()
	v.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			v.t.Errorf("serve: %v", err)
		}
	})
	v.eventually("a certificate", func() bool {
		c, err := v.dial(nil)
		if err == nil {
			err = c.Close()
		}
		return err == nil
	})
}

func (v *vault) eventually(what string, done func() bool) {
	v.t.Helper()
	for range 200 {
		if done() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	v.t.Fatalf("%s: not within 10 s", what)
}

func (v *vault) dial(change func(*tls.Config)) (*tls.Conn, error) {
	config := &tls.Config{RootCAs: v.roots, ServerName: "mfg-auxiliary.mfg-system.svc"}
	if change != nil {
		change(config)
	}
	d := tls.Dialer{Config: config}
	c, err := d.DialContext(v.t.Context(), "tcp", v.addr)
	if err != nil {
		return nil, err
	}
	return c.(*tls.Conn), nil
}

// said is an answer.
type said struct {
	code   int
	reason string
	body   string
	header http.Header
}

// send writes a raw request and reads the answer; half closes the sending side after it.
func (v *vault) send(raw string, half bool) said {
	v.t.Helper()
	c, err := v.dial(nil)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		v.t.Fatal(err)
	}
	// The server may answer and end before it has had everything.
	_, _ = io.WriteString(c, raw)
	if half {
		_ = c.CloseWrite()
	}
	return v.read(c)
}

func (v *vault) read(r io.Reader) said {
	v.t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil {
		v.t.Fatalf("read answer: %v", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatalf("read answer: %v", err)
	}
	out := said{code: response.StatusCode, body: string(body), header: response.Header}
	var refusal wire.Error
	if json.Unmarshal(body, &refusal) == nil {
		out.reason = refusal.Reason
	}
	return out
}

// request is a push as it goes over the wire.
func request(token string, body []byte) string {
	return "POST /keyring/escrow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
}

func bodyOf(t testing.TB, content string, change func(*wire.KeyringEscrow)) []byte {
	t.Helper()
	push := wire.KeyringEscrow{
		Namespace: "shop", Group: "orders", Site: "paris", PodUID: podUID, Digest: wire.KeyringDigest([]byte(content)), Keyring: []byte(content),
	}
	if change != nil {
		change(&push)
	}
	raw, err := json.Marshal(push)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// stored are the names of all Secrets with a keyring.
func (v *vault) stored() []string {
	v.t.Helper()
	var list corev1.SecretList
	if err := v.cluster.List(v.t.Context(), &list); err != nil {
		v.t.Fatal(err)
	}
	var out []string
	for _, s := range list.Items {
		if len(s.Data["keyring"]) > 0 {
			out = append(out, s.Name)
		}
	}
	return out
}

// keepsSecrets fails if key bytes or tokens are in a text that others read (I11, I19).
func (v *vault) keepsSecrets(what, text string) {
	v.t.Helper()
	secrets := []string{keyData, keyring[:40]}
	for _, token := range v.tokens {
		secrets = append(secrets, token)
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			v.t.Errorf("%s holds a secret: %s", what, text)
		}
	}
}
