// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/escrow"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

func TestEscrowTakesAKeyring(t *testing.T) {
	v := newVault(t, testLimits())
	before := pushesOf("shop", "orders", escrowStored)
	defer func() {
		if after := pushesOf("shop", "orders", escrowStored); after != before+2 {
			t.Errorf("%v pushes are counted, want 2", after-before)
		}
	}()
	for range 2 {
		got := v.send(request(v.tokens["paris"], bodyOf(t, keyring, nil)), false)
		var answer wire.KeyringEscrowed
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.code != 200 {
			t.Fatalf("%d %s (%v)", got.code, got.body, err)
		}
		want := wire.KeyringEscrowed{Secret: "mysql-orders-paris-keyring-v1", Version: 1, Digest: wire.KeyringDigest([]byte(keyring))}
		if answer != want {
			t.Errorf("answer %+v, want %+v", answer, want)
		}
		v.keepsSecrets("the answer", got.body)
	}
	if stored := v.stored(); len(stored) != 1 {
		t.Errorf("stored %v", stored)
	}
	v.keepsSecrets("the log", v.log.String())
}

// Abuse is answered exactly, and leaves nothing behind.
func TestEscrowRefuses(t *testing.T) {
	v := newVault(t, testLimits())
	good, stale := bodyOf(t, keyring, nil), v.tokens["paris"]
	v.renew("paris")
	token, other := v.tokens["paris"], escrow.NewToken()
	site := func(name string) []byte { return bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.Site = name }) }
	large := `{"namespace":"` + strings.Repeat("x", wire.MaxKeyringBytes) + `"}`
	post := func(headers, body string) string {
		return "POST /keyring/escrow HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + body
	}
	auth, length := "Authorization: Bearer "+token+"\r\n", "Content-Length: "+strconv.Itoa(len(good))+"\r\n"
	tests := map[string]struct {
		raw     string
		half    bool
		code    int
		reason  string
		outcome string
	}{
		"WrongToken":        {raw: request(other, good), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"StaleToken":        {raw: request(stale, good), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"TokenOfAnother":    {raw: request(v.tokens["madrid"], good), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"UnknownSite":       {raw: request(token, site("rome")), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"UnknownAndWrong":   {raw: request(other, site("rome")), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"NoSite":            {raw: request(token, []byte(`{}`)), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"NoScheme":          {raw: post("Authorization: "+token+"\r\n"+length, string(good)), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"NoSpace":           {raw: post("Authorization: Bearer\r\n"+length, string(good)), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"NoToken":           {raw: post(length, string(good)), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"EmptyToken":        {raw: request("", good), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"TwoTokens":         {raw: post(auth+auth+length, string(good)), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"OtherScheme":       {raw: post("Authorization: Basic "+token+"\r\n"+length, string(good)), code: 401, reason: wire.ReasonUnauthorized, outcome: escrowUnauthorized},
		"WrongDigest":       {raw: request(token, bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.Digest = wire.KeyringDigest(nil) })), code: 422, reason: wire.ReasonDigestMismatch, outcome: escrowDigestMismatch},
		"NotAKeyring":       {raw: request(token, bodyOf(t, "hello", nil)), code: 422, reason: wire.ReasonNotAKeyring, outcome: escrowNotAKeyring},
		"HalfAKeyring":      {raw: request(token, bodyOf(t, keyring[:len(keyring)/2], nil)), code: 422, reason: wire.ReasonNotAKeyring, outcome: escrowNotAKeyring},
		"EmptyKeyring":      {raw: request(token, bodyOf(t, `{"version":"1.0","elements":[]}`, nil)), code: 422, reason: wire.ReasonNotAKeyring, outcome: escrowNotAKeyring},
		"NoKeyring":         {raw: request(token, bodyOf(t, "", nil)), code: 422, reason: wire.ReasonNotAKeyring, outcome: escrowNotAKeyring},
		"OtherPod":          {raw: request(token, bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.PodUID = "x" })), code: 409, reason: wire.ReasonOtherPod, outcome: escrowOtherPod},
		"ReplayWhenSealed":  {raw: request(v.tokens["madrid"], site("madrid")), code: 409, reason: wire.ReasonNotUnsealed, outcome: escrowNotUnsealed},
		"Oversized":         {raw: request(token, []byte(large)), code: 413, reason: wire.ReasonTooLarge, outcome: escrowTooLarge},
		"OversizedUnsaid":   {raw: post(auth+"Transfer-Encoding: chunked\r\n", strconv.FormatInt(int64(len(large)), 16)+"\r\n"+large+"\r\n0\r\n\r\n"), code: 413, reason: wire.ReasonTooLarge, outcome: escrowTooLarge},
		"OversizedStranger": {raw: request(other, []byte(large)), code: 413, reason: wire.ReasonTooLarge, outcome: escrowTooLarge},
		"Slow":              {raw: post(auth+length, string(good[:len(good)/2])), code: 408, reason: wire.ReasonSlow, outcome: escrowTooSlow},
		"Truncated":         {raw: post(auth+length, string(good[:len(good)/2])), half: true, code: 400, reason: wire.ReasonBadRequest, outcome: escrowBadRequest},
		"NotJSON":           {raw: request(token, []byte(keyData)), code: 400, reason: wire.ReasonBadRequest, outcome: escrowBadRequest},
		"TwoBodies":         {raw: request(token, append(bytes.Clone(good), good...)), code: 400, reason: wire.ReasonBadRequest, outcome: escrowBadRequest},
		"NoBase64":          {raw: request(token, []byte(`{"keyring":"`+keyData[:31]+`"}`)), code: 400, reason: wire.ReasonBadRequest, outcome: escrowBadRequest},
		"NoBody":            {raw: request(token, nil), code: 400, reason: wire.ReasonBadRequest, outcome: escrowBadRequest},
		"Get":               {raw: "GET /keyring/escrow HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", code: 405, reason: wire.ReasonMethodNotAllowed},
		"Put":               {raw: strings.Replace(request(token, good), "POST", "PUT", 1), code: 405, reason: wire.ReasonMethodNotAllowed},
		"OtherPath":         {raw: strings.Replace(request(token, good), "/keyring/escrow", "/status", 1), code: 404, reason: wire.ReasonNotFound},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, namespace, group := 0.0, "", ""
			if tc.code == http.StatusConflict || tc.code == http.StatusUnprocessableEntity {
				namespace, group = "shop", "orders" // its token was found good by then
			}
			if tc.outcome != "" {
				before = pushesOf(namespace, group, tc.outcome)
			}
			got := v.send(tc.raw, tc.half)
			if got.code != tc.code || got.reason != tc.reason {
				t.Errorf("%d %s, want %d %s", got.code, got.body, tc.code, tc.reason)
			}
			if tc.outcome != "" && pushesOf(namespace, group, tc.outcome) != before+1 {
				t.Errorf("%s is not counted", tc.outcome)
			}
			if (got.header.Get("Allow") == http.MethodPost) != (tc.code == 405) {
				t.Errorf("headers %v", got.header)
			}
			if (got.header.Get("WWW-Authenticate") == "Bearer") != (tc.code == 401) || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", got.header)
			}
			v.keepsSecrets("the answer", got.body)
		})
	}
	if stored := v.stored(); len(stored) != 0 {
		t.Errorf("stored %v", stored)
	}
	v.keepsSecrets("the log", v.log.String())
}

// pushesOf is how many pushes of a group were counted with an outcome. Both names are empty for those whose token was not found good.
func pushesOf(namespace, group, outcome string) float64 {
	return testutil.ToFloat64(escrowPushes.WithLabelValues(namespace, group, outcome))
}

// Anyone who reaches the port chooses the names in a push: only those that came with a good token become series.
func TestStrangersMakeNoSeries(t *testing.T) {
	v := newVault(t, testLimits())
	metrics.ForgetGroup("shop", "orders")
	before := testutil.CollectAndCount(escrowPushes)
	for i := range 3 {
		for _, token := range []string{escrow.NewToken(), v.tokens["paris"]} {
			v.send(request(token, bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.Group = "invented-" + strconv.Itoa(i) })), false)
		}
	}
	if n := testutil.CollectAndCount(escrowPushes); n != before {
		t.Errorf("%d series by strangers", n-before)
	}
	v.send(request(v.tokens["paris"], bodyOf(t, keyring, nil)), false)
	if n := testutil.CollectAndCount(escrowPushes); n != before+len(escrowOutcomes()) {
		t.Errorf("%d series of the group, want one for each outcome", n-before)
	}
	metrics.ForgetGroup("shop", "orders")
	if n := testutil.CollectAndCount(escrowPushes); n != before {
		t.Errorf("%d series of a group that is gone", n-before)
	}
}

// failing is a store that takes no keyring.
type failing struct{ err error }

func (failing) Authenticate(context.Context, wire.KeyringEscrow, string) error { return nil }

func (k failing) Put(context.Context, wire.KeyringEscrow, string) (wire.KeyringEscrowed, error) {
	return wire.KeyringEscrowed{}, k.err
}

// I11, I19: what goes wrong inside is told in the log alone, where an error of the API server may be read, but no token and no key.
func TestEscrowTellsNothingOfAFailureI11I19(t *testing.T) {
	for name, tc := range map[string]struct {
		err         error
		level       slog.Level
		code        int
		told        string
		logs, inLog bool
	}{
		"the API server fails": {fmt.Errorf("create x: %w", errors.New("hunter2")), slog.LevelDebug, 500, "the keyring could not be stored", true, true},
		"a refusal":            {fmt.Errorf("hunter2: %w", wire.ErrOtherPod), slog.LevelDebug, 409, wire.ErrOtherPod.Error(), false, true},
		// Whoever has no token must not fill the log, nor choose what is in it.
		"a stranger": {fmt.Errorf("hunter2: %w", wire.ErrUnauthorized), slog.LevelInfo, 401, wire.ErrUnauthorized.Error(), false, false},
	} {
		var log bytes.Buffer
		token := escrow.NewToken()
		e := NewEscrow(failing{tc.err}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: tc.level})))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow, bytes.NewReader(bodyOf(t, keyring, nil)))
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		var refusal wire.Error
		if err := json.Unmarshal(w.Body.Bytes(), &refusal); err != nil || w.Code != tc.code || refusal.Error != tc.told {
			t.Errorf("I19: %s: answered %d %s (%v)", name, w.Code, w.Body, err)
		}
		if text := log.String(); strings.Contains(text, "hunter2") != tc.logs || (text != "") != tc.inLog {
			t.Errorf("%s: logged %q", name, text)
		}
		for _, secret := range []string{token, keyData, base64.StdEncoding.EncodeToString([]byte(keyring))[:40]} {
			if strings.Contains(log.String()+w.Body.String(), secret) {
				t.Errorf("I11, I19: %s: a secret is told: %s%s", name, log.String(), w.Body)
			}
		}
	}
}

// broken is a body that ends in an error.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// slowError is an error of a network that may be a timeout.
type slowError bool

func (slowError) Error() string   { return "the network" }
func (s slowError) Timeout() bool { return bool(s) }
func (slowError) Temporary() bool { return false }

// TestWhyABodyCannotBeRead: each is answered as what it is, and a keyring that came in part is none.
func TestWhyABodyCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		err, want error
	}{
		"it takes too long": {slowError(true), errTooSlow}, "the connection is cut": {slowError(false), errTruncated}, "it ends": {io.ErrUnexpectedEOF, errTruncated},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow, broken{tc.err})
		if _, err := readPush(httptest.NewRecorder(), r); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow, strings.NewReader(strings.Repeat("x", wire.MaxKeyringBytes+1)))
	if _, err := readPush(httptest.NewRecorder(), large); !errors.Is(err, errTooLarge) {
		t.Errorf("one byte too many: %v", err)
	}
	large.ContentLength = -1
	if _, err := readPush(httptest.NewRecorder(), large); err == nil {
		t.Error("one byte too many, of which nothing was said, is read")
	}
}

// TestAPlaceIsGivenBack: each of many pushes finds one.
func TestAPlaceIsGivenBack(t *testing.T) {
	e := newEscrow(failing{wire.ErrOtherPod}, nil, escrowLimits{requests: 1, strangers: 1, turns: 1, perAddress: 1, put: time.Second})
	for range 3 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow, bytes.NewReader(bodyOf(t, keyring, nil)))
		r.Header.Set("Authorization", "Bearer "+escrow.NewToken())
		r.RemoteAddr = "somebody"
		w := httptest.NewRecorder()
		if e.ServeHTTP(w, r); w.Code != http.StatusConflict {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if len(e.places) != 0 || len(e.from) != 0 {
		t.Errorf("left behind: %d %v", len(e.places), e.from)
	}
	two := newEscrow(nil, nil, escrowLimits{requests: 3, strangers: 3, perAddress: 1})
	for _, remote := range []string{"one", "another"} {
		if _, ok := two.enter(remote, escrow.NewToken(), nil); !ok {
			t.Errorf("%s has no share of its own", remote)
		}
	}
}

// TestStoringIsBounded: a store that hangs keeps no place for ever.
func TestStoringIsBounded(t *testing.T) {
	e := newEscrow(hangs{}, nil, escrowLimits{requests: 1, strangers: 1, turns: 1, perAddress: 1, put: time.Millisecond})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow, bytes.NewReader(bodyOf(t, keyring, nil)))
	r.Header.Set("Authorization", "Bearer "+escrow.NewToken())
	w := httptest.NewRecorder()
	if e.ServeHTTP(w, r); w.Code != http.StatusInternalServerError {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// hangs is a store that waits for as long as it may.
type hangs struct{}

func (hangs) Authenticate(context.Context, wire.KeyringEscrow, string) error { return nil }

func (hangs) Put(ctx context.Context, _ wire.KeyringEscrow, _ string) (wire.KeyringEscrowed, error) {
	<-ctx.Done()
	return wire.KeyringEscrowed{}, ctx.Err()
}

// Whoever has no token gets the same bytes for a site that there is and for one that there is not.
func TestEscrowAnswersStrangersAlike(t *testing.T) {
	v := newVault(t, testLimits())
	answers := map[string]bool{}
	for _, body := range [][]byte{
		bodyOf(t, keyring, nil), bodyOf(t, "no keyring", nil), bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.Digest = "x" }),
		bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.Site = "madrid" }), bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.Group = "billing" }),
		bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.Namespace = "../x" }),
	} {
		got := v.send(request(escrow.NewToken(), body), false)
		got.header.Del("Date")
		raw, err := json.Marshal(got.header)
		if err != nil {
			t.Fatal(err)
		}
		answers[strconv.Itoa(got.code)+string(raw)+got.body] = true
	}
	if len(answers) != 1 {
		t.Errorf("strangers can tell: %v", answers)
	}
}

// Pushes at the same moment: the same content gets one version, another content one of its own.
func TestEscrowOfConcurrentPushes(t *testing.T) {
	l := testLimits()
	l.perAddress = 32
	v := newVault(t, l)
	other := strings.Replace(keyring, keyData, strings.Repeat("A0", 16), 1)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			content := keyring
			if i%2 == 1 {
				content = other
			}
			got := v.send(request(v.tokens["paris"], bodyOf(t, content, nil)), false)
			var answer wire.KeyringEscrowed
			if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.code != 200 {
				t.Errorf("%d %s", got.code, got.body)
				return
			}
			s := &corev1.Secret{}
			if err := v.cluster.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: answer.Secret}, s); err != nil || string(s.Data["keyring"]) != content {
				t.Errorf("%s does not hold what was pushed (%v)", answer.Secret, err)
			}
		})
	}
	all.Wait()
	if n := len(v.stored()); n < 2 || n > 16 {
		t.Errorf("%d versions", n)
	}
}
