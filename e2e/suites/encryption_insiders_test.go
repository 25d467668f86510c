// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// insiders hold the token of one site, which is unsealed.
func insiders(t *testing.T, v *vault, e endpoint, token, site, other string) {
	ctx := t.Context()
	content := keyringTaken(t, v, e, token, site)
	concurrent(t, v, e, token, push(t, v, site, content))
	// Stored by mistake it could not pass for one that is in escrow anyway.
	fresh := forged(t, v, content)
	overPlainText(t, v, e, token, push(t, v, site, fresh))
	// These come last: what is refused for another reason than the token shows that the token was good all the while.
	for _, c := range []struct {
		name   string
		change func(*wire.KeyringEscrow)
		code   int
		reason string
	}{
		// The other one is sealed and has no token. That one of its own is compared, while both are unsealed, is shown by
		// TestTokensOpenTheirOwnSiteAlone of operator/escrow.
		{"for another site", func(p *wire.KeyringEscrow) { p.Site = other }, http.StatusUnauthorized, wire.ReasonUnauthorized},
		{"for another group", func(p *wire.KeyringEscrow) { p.Group = "nobody" }, http.StatusUnauthorized, wire.ReasonUnauthorized},
		{"wrong digest", func(p *wire.KeyringEscrow) { p.Digest = wire.KeyringDigest([]byte("x")) }, http.StatusUnprocessableEntity, wire.ReasonDigestMismatch},
		{"no keys", func(p *wire.KeyringEscrow) {
			p.Keyring = []byte(`{"version":"1.0","elements":[]}`)
			p.Digest = wire.KeyringDigest(p.Keyring)
		}, http.StatusUnprocessableEntity, wire.ReasonNotAKeyring},
		{"of another pod", func(p *wire.KeyringEscrow) { p.PodUID = "00000000-0000-0000-0000-000000000000" }, http.StatusConflict, wire.ReasonOtherPod},
	} {
		p := push(t, v, site, fresh)
		c.change(&p)
		got, err := e.post(ctx, token, encode(t, p))
		expect(t, v, c.name, got, err, c.code, c.reason)
		notStored(t, v, c.name, p)
	}
}

// notStored fails the test if a refused keyring is in escrow. The rotation goes on meanwhile, so that others may come.
func notStored(t *testing.T, v *vault, name string, p wire.KeyringEscrow) {
	t.Helper()
	for secret := range keyringSecrets(t, v) {
		if bytes.Equal(secretData(t, v, secret), p.Keyring) {
			t.Errorf("%s: %s holds it", name, secret)
		}
	}
}

// keyringTaken pushes what the sidecar of the site pushes, until it is taken, and returns it: every refusal afterwards is for what
// was changed in it.
func keyringTaken(t *testing.T, v *vault, e endpoint, token, site string) []byte {
	t.Helper()
	var content []byte
	if err := stage.Poll(t.Context(), time.Minute, "the keyring of "+site+" to be taken", func(ctx context.Context) error {
		out, err := v.Exec(ctx, site, "cat", keyringPath)
		if err != nil {
			return err
		}
		content = []byte(out)
		got, err := e.post(ctx, token, encode(t, push(t, v, site, content)))
		if err == nil && got.code != http.StatusOK {
			err = fmt.Errorf("answered with %d %s", got.code, got.reason)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	v.learn(t)
	for id, key := range keysIn(t, content) {
		v.key(t, key, id)
	}
	return content
}

// forged is a keyring that nobody has: another key in the place of a real one.
func forged(t *testing.T, v *vault, content []byte) []byte {
	t.Helper()
	for id, key := range keysIn(t, content) {
		raw := make([]byte, len(key)/2)
		_, _ = rand.Read(raw) // it never fails
		fake := strings.ToUpper(hex.EncodeToString(raw))
		v.key(t, fake, "the forged "+id)
		return bytes.Replace(content, []byte(key), []byte(fake), 1)
	}
	t.Fatal("the keyring has no key")
	return nil
}

// overPlainText: with a token and a body that are good, nothing is taken over plain text. The listener beside it does not know the
// path, and that of the escrow speaks TLS alone.
func overPlainText(t *testing.T, v *vault, e endpoint, token string, p wire.KeyringEscrow) {
	t.Helper()
	host, _, err := net.SplitHostPort(e.addr)
	if err != nil {
		t.Fatal(err)
	}
	// Without a pause before the body it would be on its way when a TLS listener closes, and its answer be lost in a reset.
	waits := &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: 10 * time.Second}
	plain := &http.Client{Timeout: 30 * time.Second, Transport: waits}
	for _, c := range []struct {
		port   int32
		code   int
		reason string
	}{
		{wire.PortOperatorAuxiliary, http.StatusNotFound, wire.ReasonNotFound},
		{wire.PortOperatorEscrow, http.StatusBadRequest, ""},
	} {
		addr := net.JoinHostPort(host, fmt.Sprint(c.port))
		url := "http://" + addr + wire.PathKeyringEscrow
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(encode(t, p)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Expect", "100-continue")
		got, err := ask(plain, req)
		expect(t, v, "plain text to "+addr, got, err, c.code, c.reason)
		// A handler that read the request would give a reason.
		if got.reason != c.reason {
			t.Errorf("plain text to %s: reason %q, want %q", addr, got.reason, c.reason)
		}
	}
	notStored(t, v, "plain text", p)
}

// concurrent pushes of the keyring that is in escrow are answered with its version. Some may be turned away for their number, not
// all. That of a new one becomes one version is tested in operator/escrow (TestConcurrentPushes).
func concurrent(t *testing.T, v *vault, e endpoint, token string, p wire.KeyringEscrow) {
	t.Helper()
	body := encode(t, p)
	var mu sync.Mutex
	versions, away := map[int64]int{}, map[string]int{}
	var errs []error
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := e.post(t.Context(), token, body)
			var stored wire.KeyringEscrowed
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs = append(errs, err)
			case got.code == http.StatusOK:
				errs = append(errs, json.Unmarshal([]byte(got.body), &stored))
				versions[stored.Version]++
			case got.code == http.StatusServiceUnavailable || got.code == http.StatusConflict:
				away[got.reason]++
			default:
				errs = append(errs, fmt.Errorf("answered with %d %s", got.code, got.reason))
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("concurrent pushes: %v", err)
	}
	if len(versions) != 1 {
		t.Errorf("one keyring became the versions %v, want one; turned away: %v", versions, away)
	}
	for version := range versions {
		name := v1alpha1.KeyringSecret(v.Name, p.Site, version)
		if !bytes.Equal(secretData(t, v, name), p.Keyring) {
			t.Errorf("concurrent pushes were answered with version %d, and %s holds something else", version, name)
		}
	}
}
