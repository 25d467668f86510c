// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	token       = "s3cr3t-token-of-the-site"
	keyringText = `{"version":"1.0","elements":[{"data_id":"k","data":"C0FFEE"}]}`
)

// escrowServer is an operator that answers with what answer says, and the client that believes it.
func escrowServer(t *testing.T, answer http.HandlerFunc) (client.Escrow, *httptest.Server) {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	e := client.Escrow{URL: server.URL + "/", CAFile: filepath.Join(dir, "ca.crt"), TokenFile: filepath.Join(dir, "token")}
	replace(t, e.CAFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	replace(t, e.TokenFile, token+"\n")
	return e, server
}

func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func body() wire.KeyringEscrow {
	return wire.KeyringEscrow{
		Namespace: "shop", Group: "orders", Site: "a", PodUID: "u", Digest: wire.KeyringDigest([]byte(keyringText)), Keyring: []byte(keyringText),
	}
}

func TestEscrowPushes(t *testing.T) {
	stored := wire.KeyringEscrowed{Secret: "mysql-orders-a-keyring-v3", Version: 3, Digest: body().Digest}
	e, _ := escrowServer(t, func(w http.ResponseWriter, r *http.Request) {
		var got wire.KeyringEscrow
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(body(), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if r.Method != http.MethodPost || r.URL.Path != wire.PathKeyringEscrow || r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		answer(t, w, http.StatusOK, stored)
	})
	got, err := e.Push(t.Context(), body())
	if err != nil || got != stored {
		t.Errorf("%+v, %v", got, err)
	}
}

// I16: before a site is adopted, the endpoint is found out of reach by whatever a push would fail on.
func TestEscrowIsReachedAsAPushWouldBe(t *testing.T) {
	e, server := escrowServer(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	authorities, err := os.ReadFile(e.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Reach(t.Context(), authorities); err != nil {
		t.Errorf("out of reach: %v", err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, tt := range map[string]struct {
		url         string
		authorities []byte
	}{
		"no TLS":                  {plain.URL, authorities},
		"TLS is spoken of only":   {"https://" + strings.TrimPrefix(plain.URL, "http://"), authorities},
		"another authority":       {server.URL, []byte(strangersCA)},
		"a name that is not its":  {strings.Replace(server.URL, "127.0.0.1", "localhost", 1), authorities},
		"authorities are missing": {server.URL, nil},
	} {
		if err := (client.Escrow{URL: tt.url}).Reach(t.Context(), tt.authorities); err == nil {
			t.Errorf("%s: it can be reached", name)
		}
	}
	server.Close()
	if err := e.Reach(t.Context(), authorities); err == nil {
		t.Error("nobody listens, and it can be reached")
	}
}

// Nothing is remembered between two pushes: what was replaced counts at once.
func TestEscrowReadsItsFilesForEveryPush(t *testing.T) {
	var seen []string
	handler := func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		answer(t, w, http.StatusOK, wire.KeyringEscrowed{Version: 1, Digest: body().Digest})
	}
	e, _ := escrowServer(t, handler)
	if _, err := e.Push(t.Context(), body()); err != nil {
		t.Fatal(err)
	}
	good, _ := os.ReadFile(e.CAFile)
	replace(t, e.CAFile, "none")
	if _, err := e.Push(t.Context(), body()); !errors.Is(err, client.ErrNoCA) {
		t.Errorf("got %v", err)
	}
	replace(t, e.CAFile, string(good))
	replace(t, e.TokenFile, "renewed")
	if _, err := e.Push(t.Context(), body()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bearer " + token, "Bearer renewed"}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	replace(t, e.TokenFile, "\n")
	if _, err := e.Push(t.Context(), body()); !errors.Is(err, client.ErrNoToken) {
		t.Errorf("got %v", err)
	}
}

// I19: a keyring goes to the one who has a certificate of the CA, over TLS, and nowhere else.
func TestEscrowTrustsOnlyTheCAI19(t *testing.T) {
	var asked int
	count := func(http.ResponseWriter, *http.Request) { asked++ }
	e, _ := escrowServer(t, count)
	other, _ := escrowServer(t, count)
	e.CAFile = func() string { // a CA that signed nothing here
		path := filepath.Join(t.TempDir(), "ca.crt")
		replace(t, path, strangersCA)
		return path
	}()
	if _, err := e.Push(t.Context(), body()); err == nil {
		t.Error("a stranger got a keyring")
	}
	plain := httptest.NewServer(http.HandlerFunc(count))
	defer plain.Close()
	other.URL = plain.URL
	if _, err := other.Push(t.Context(), body()); !errors.Is(err, client.ErrPlaintext) {
		t.Errorf("got %v", err)
	}
	other.URL = strings.Replace(plain.URL, "http://", "https://", 1)
	if _, err := other.Push(t.Context(), body()); err == nil {
		t.Error("a listener without TLS got a keyring")
	}
	if asked > 0 {
		t.Errorf("%d requests got through", asked)
	}
}

// I19: whatever goes wrong, the error has neither key bytes nor the token, also if the other side repeats them.
func TestEscrowErrorsShowNothingI19(t *testing.T) {
	elsewhere, followed := "", 0
	target, _ := escrowServer(t, func(http.ResponseWriter, *http.Request) { followed++ })
	elsewhere = target.URL
	for name, handler := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) {
			answer(t, w, http.StatusUnauthorized, wire.Error{Reason: wire.ReasonUnauthorized, Error: "no"})
		},
		"token repeated": func(w http.ResponseWriter, r *http.Request) {
			answer(t, w, http.StatusBadRequest, wire.Error{Reason: wire.ReasonBadRequest, Error: r.Header.Get("Authorization")})
		},
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, token) },
		"another keyring": func(w http.ResponseWriter, _ *http.Request) {
			answer(t, w, http.StatusOK, wire.KeyringEscrowed{Version: 1, Digest: "sha256:0"})
		},
		"no version": func(w http.ResponseWriter, _ *http.Request) {
			answer(t, w, http.StatusOK, wire.KeyringEscrowed{Digest: body().Digest})
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		},
		"too much": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, wire.MaxBodyBytes+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := escrowServer(t, handler)
			_, err := e.Push(t.Context(), body())
			if err == nil {
				t.Fatal("no error")
			}
			for _, secret := range []string{token, "C0FFEE", keyringText[:20]} {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
					t.Errorf("%q is in the error: %v", secret, err)
				}
			}
			if told, ok := errors.AsType[*client.StatusError](err); name == "refused" && (!ok || told.Reason != wire.ReasonUnauthorized) {
				t.Errorf("the reason is lost: %v", err)
			}
		})
	}
	if followed > 0 {
		t.Error("a redirect was followed")
	}
}

// strangersCA is a CA that signed nothing.
const strangersCA = `-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIUE9aZDd5cKSfZQ7l2QQvL/GiiOGowCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIc3RyYW5nZXIwIBcNMjYxMTIwMTUxOTE5WhgPMjEyNjEwMjcx
NTE5MTlaMBMxETAPBgNVBAMMCHN0cmFuZ2VyMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEMh4ezrSreDtkUoX5cEfVPJgJzoOua/H2s5f/1m5VyH3DpuzHTaH7BdNP
rHN0jBhPFX3vRbh/ZojZX2LbBInHsaNTMFEwHQYDVR0OBBYEFDtYdF0uvPX/H6lR
bcIc1/uLKC28MB8GA1UdIwQYMBaAFDtYdF0uvPX/H6lRbcIc1/uLKC28MA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgHCVrdH5qRwDTyqOTCdGOLI1P
AmCytaVJm8hzUMZznIECIQCP4U6smNFE/9uGFpKcpK7/KqhWCEK6FYtogeNj0SdQ
jQ==
-----END CERTIFICATE-----
`

// TestEscrowErrorsAreTheSameAtEveryTry: they become the message of a site in status, which must not change while nothing does.
func TestEscrowErrorsAreTheSameAtEveryTry(t *testing.T) {
	e, server := escrowServer(t, func(http.ResponseWriter, *http.Request) {})
	for name, tc := range map[string]struct {
		fails func(try int) error
		holds string
	}{
		"reset": {func(try int) error {
			return &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 40000 + try}, Err: syscall.ECONNRESET}
		}, "reset by peer"},
		"name server is silent": {func(try int) error {
			return &net.OpError{Op: "dial", Err: &net.DNSError{Err: fmt.Sprintf("read udp 10.0.0.1:%d->10.0.0.2:53: i/o timeout", try), Name: "mfg"}}
		}, "look up mfg"},
		"no such name": {func(try int) error {
			return &net.DNSError{Err: "no such host", Name: "mfg", Server: fmt.Sprint(try), IsNotFound: true}
		}, "no such host"},
		"certificate ended": {func(try int) error {
			return x509.CertificateInvalidError{Cert: server.Certificate(), Reason: x509.Expired, Detail: fmt.Sprint("current time is ", try)}
		}, "not now by this clock"},
	} {
		var said []string
		for try := range 2 {
			e.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, tc.fails(try) }
			_, err := e.Push(t.Context(), body())
			if err == nil || !strings.Contains(err.Error(), tc.holds) {
				t.Fatalf("%s: %v", name, err)
			}
			said = append(said, err.Error())
			if err := e.Reach(t.Context(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})); err != nil {
				said = append(said, err.Error())
			}
		}
		if len(said) != 4 || said[0] != said[2] || said[1] != said[3] {
			t.Errorf("%s: %q", name, said)
		}
	}
}
