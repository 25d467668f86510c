// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// endpoint is the operator's escrow listener as this machine reaches it.
type endpoint struct {
	addr   string
	config *tls.Config
	client *http.Client
}

func escrowEndpoint(t *testing.T, v *vault) endpoint {
	t.Helper()
	var pods corev1.PodList
	if err := v.Kube.List(t.Context(), &pods, client.InNamespace(stage.OperatorNamespace), client.MatchingFields{"status.phase": "Running"}); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(v.CA()) {
		t.Fatal("the group has no CA certificate")
	}
	config := &tls.Config{RootCAs: pool, ServerName: stage.AuxiliaryService + "." + stage.OperatorNamespace + ".svc", MinVersion: tls.VersionTLS12}
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, stage.OperatorName) && pod.DeletionTimestamp == nil {
			return endpoint{
				addr: net.JoinHostPort(pod.Status.PodIP, "8443"), config: config,
				client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}},
			}
		}
	}
	t.Fatal("the operator has no pod")
	return endpoint{}
}

// refusal is what the endpoint answered: the code, the reason and the whole body.
type refusal struct {
	code   int
	reason string
	body   string
}

func (e endpoint) post(ctx context.Context, token string, body []byte) (refusal, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+e.addr+wire.PathKeyringEscrow, bytes.NewReader(body))
	if err != nil {
		return refusal{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return ask(e.client, req)
}

func ask(c *http.Client, req *http.Request) (refusal, error) {
	resp, err := c.Do(req)
	if err != nil {
		return refusal{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	return readRefusal(resp)
}

func readRefusal(resp *http.Response) (refusal, error) {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return refusal{}, err
	}
	var told struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(raw, &told)
	return refusal{resp.StatusCode, told.Reason, string(raw)}, nil
}

// raw sends a request by hand over TLS, so that it can stop in the middle, and reads the answer.
func (e endpoint) raw(ctx context.Context, token string, length int, body []byte, closeWrite bool) (refusal, error) {
	dialer := &tls.Dialer{Config: e.config}
	conn, err := dialer.DialContext(ctx, "tcp", e.addr)
	if err != nil {
		return refusal{}, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		wire.PathKeyringEscrow, e.config.ServerName, token, length, body); err != nil {
		return refusal{}, err
	}
	if tlsConn, ok := conn.(*tls.Conn); ok && closeWrite {
		if err := tlsConn.CloseWrite(); err != nil {
			return refusal{}, err
		}
	}
	return answerOn(conn)
}

// expect fails the test unless an answer has a code and a reason, and tells nothing of what was sent.
func expect(t *testing.T, v *vault, name string, got refusal, err error, code int, reason string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if got.code != code || reason != "" && got.reason != reason {
		t.Errorf("%s: %d %s, want %d %s", name, got.code, got.reason, code, reason)
	}
	for needle, what := range v.needles {
		if strings.Contains(got.body, needle) {
			t.Errorf("%s: the answer repeats %s", name, what)
		}
	}
}

// push is the body that the sidecar of a site would send.
func push(t *testing.T, v *vault, site string, content []byte) wire.KeyringEscrow {
	t.Helper()
	pod, err := v.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	return wire.KeyringEscrow{
		Namespace: v.Namespace, Group: v.Name, Site: site, PodUID: string(pod.UID), Keyring: content, Digest: wire.KeyringDigest(content),
	}
}

func encode(t *testing.T, p wire.KeyringEscrow) []byte {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// keyringSecrets are the escrow Secrets of the group.
func keyringSecrets(t *testing.T, v *vault) map[string]string {
	t.Helper()
	all := uids(t, v.Group, &corev1.SecretList{})
	for name := range all {
		if !strings.Contains(name, "-keyring-v") {
			delete(all, name)
		}
	}
	return all
}

// escrowAbused asks the endpoint for all that it must refuse: while every site is sealed, while one is not, and after.
func escrowAbused(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	site, other := replicas(group)[0], replicas(group)[1]
	e := escrowEndpoint(t, v)
	before := keyringSecrets(t, v)
	strangers(t, v, e, site)
	if after := keyringSecrets(t, v); len(after) != len(before) {
		t.Errorf("%d keyrings in escrow, before %d: something was stored", len(after), len(before))
	}

	annotate(t, v.Group, v1alpha1.AnnotationRotateKeyring, site)
	token := v.tokenOf(t, site)
	insiders(t, v, e, token, site, other)
	if outcome := answered(t, v.Group, v1alpha1.AnnotationRotateKeyring, site, resealing); outcome.Outcome != v1alpha1.RequestDone {
		t.Fatalf("the rotation was answered: %+v", outcome)
	}
	group = v.sealed(t, resealing)
	after := keyringSecrets(t, v)
	for name := range after {
		if before[name] == "" && !strings.HasPrefix(name, "mysql-"+v.Name+"-"+site+"-") {
			t.Errorf("%s came to be: nothing but %s was rotated", name, site)
		}
	}

	// A replay of what was good: the site is sealed, the token was of the round before.
	content := secretData(t, v, keyringOf(group, site).KeyringSecret)
	got, err := e.post(t.Context(), token, encode(t, push(t, v, site, content)))
	expect(t, v, "replay after sealing", got, err, http.StatusUnauthorized, wire.ReasonUnauthorized)
	if again := keyringSecrets(t, v); len(again) != len(after) {
		t.Error("the replay was stored")
	}
	staleToken(t, v, e, token, site, content)
}

// staleToken: the site is unsealed again, and somebody still has the token of the round before.
func staleToken(t *testing.T, v *vault, e endpoint, token, site string, content []byte) {
	t.Helper()
	annotate(t, v.Group, v1alpha1.AnnotationRotateKeyring, site)
	if fresh := v.tokenOf(t, site); fresh == token {
		t.Error("the token was not renewed")
	}
	before := keyringSecrets(t, v)
	got, err := e.post(t.Context(), token, encode(t, push(t, v, site, content)))
	expect(t, v, "stale token", got, err, http.StatusUnauthorized, wire.ReasonUnauthorized)
	for name := range keyringSecrets(t, v) {
		if before[name] == "" && bytes.Equal(secretData(t, v, name), content) {
			t.Errorf("%s holds what came with the stale token", name)
		}
	}
	if outcome := answered(t, v.Group, v1alpha1.AnnotationRotateKeyring, site, resealing); outcome.Outcome != v1alpha1.RequestDone {
		t.Fatalf("the second rotation was answered: %+v", outcome)
	}
	v.sealed(t, resealing)
}

// strangers have no token, or none that counts.
func strangers(t *testing.T, v *vault, e endpoint, site string) {
	ctx := t.Context()
	body := encode(t, push(t, v, site, []byte(`{"version":"1.0","elements":[]}`)))
	wrong := strings.Repeat("a", 43) // in the form of a token: another is refused before its body is read
	got, err := e.post(ctx, "", body)
	expect(t, v, "no token", got, err, http.StatusUnauthorized, wire.ReasonUnauthorized)
	got, err = e.post(ctx, wrong, body)
	expect(t, v, "wrong token", got, err, http.StatusUnauthorized, wire.ReasonUnauthorized)
	got, err = e.post(ctx, wrong, bytes.Repeat([]byte("x"), wire.MaxKeyringBytes+1))
	expect(t, v, "oversized", got, err, http.StatusRequestEntityTooLarge, "")
	got, err = e.post(ctx, wrong, []byte("{"))
	expect(t, v, "no JSON", got, err, http.StatusBadRequest, "")
	got, err = e.raw(ctx, wrong, len(body), body[:len(body)/2], true)
	expect(t, v, "truncated", got, err, http.StatusBadRequest, "")
	got, err = e.raw(ctx, wrong, len(body), body[:len(body)/2], false)
	expect(t, v, "slow", got, err, http.StatusRequestTimeout, wire.ReasonSlow)
}

// tokenOf waits for the token of a site that is being unsealed, and for its new pod.
func (v *vault) tokenOf(t *testing.T, site string) string {
	t.Helper()
	var token string
	if err := stage.Poll(t.Context(), comeBack, "the site "+site+" to be unsealed", func(ctx context.Context) error {
		group, err := v.Get(ctx)
		if err != nil {
			return err
		}
		secret := &corev1.Secret{}
		if err := v.Kube.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: v1alpha1.KeyringTokenSecret(v.Name, site)}, secret); err != nil {
			return err
		}
		token = string(secret.Data["token"])
		if k := keyringOf(group, site); k.Phase != v1alpha1.KeyringUnsealed || token == "" {
			return fmt.Errorf("the keyring is %q", k.Phase)
		}
		if pod, err := v.Pod(ctx, site); err != nil || !mounts(pod, secret.Name) {
			return errors.Join(err, errors.New("the pod is the one from before"))
		}
		_, err = v.Exec(ctx, site, "test", "-s", keyringPath)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	v.token(token, "the token of "+site)
	return token
}

func mounts(pod *corev1.Pod, secret string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.Secret != nil && volume.Secret.SecretName == secret
	})
}

// answerOn reads an answer from a connection.
func answerOn(conn net.Conn) (refusal, error) {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return refusal{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	return readRefusal(resp)
}
