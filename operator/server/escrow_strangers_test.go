// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/escrow"
)

// busy is a store whose looks at tokens take a while, as the API server's limit of requests makes them. One token is good.
type busy struct {
	good  string
	takes time.Duration
}

func (k busy) Authenticate(ctx context.Context, _ wire.KeyringEscrow, token string) error {
	select {
	case <-time.After(k.takes):
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", wire.ErrTokenUnread, ctx.Err())
	}
	if token != k.good {
		return wire.ErrUnauthorized
	}
	return nil
}

func (busy) Put(context.Context, wire.KeyringEscrow, string) (wire.KeyringEscrowed, error) {
	return wire.KeyringEscrowed{Version: 1}, nil
}

// pushTo pushes a whole keyring, and returns the code of the answer.
func pushTo(t *testing.T, e *Escrow, remote, token string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow, bytes.NewReader(bodyOf(t, keyring, nil)))
	r.Header.Set("Authorization", "Bearer "+token)
	r.RemoteAddr = remote
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Code
}

// flood pushes with false tokens from eight addresses, as many at a time as one may, until the returned function is called.
func flood(t *testing.T, e *Escrow) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	const pushes = 32
	for i := range pushes {
		go func() {
			defer func() { ended <- struct{}{} }()
			for ctx.Err() == nil {
				if pushTo(t, e, fmt.Sprintf("10.0.0.%d:%d", i%8, i), escrow.NewToken()) == http.StatusServiceUnavailable {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}()
	}
	return func() {
		cancel()
		for range pushes {
			<-ended
		}
	}
}

// A flood of whole pushes with false tokens keeps out neither a site whose token is new, nor one whose token was good a moment ago.
func TestFalseTokensKeepNoSiteOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keeper := busy{good: escrow.NewToken(), takes: 250 * time.Millisecond}
		e := NewEscrow(keeper, nil)
		stop := flood(t, e)
		defer stop()
		time.Sleep(time.Second)
		for _, site := range []string{"its token is new", "its token was good a moment ago"} {
			began := time.Now()
			if code := pushTo(t, e, "10.0.1.1:1", keeper.good); code != http.StatusOK || time.Since(began) > 5*time.Second {
				t.Errorf("%s: answered %d after %s", site, code, time.Since(began))
			}
		}
	})
}

// Even if each of many addresses has one place, which no newcomer may claim, and nobody's token can be looked at, a site whose token was good a
// moment ago is let in. Its own pushes are bounded too.
func TestAGoodTokenHasPlacesOfItsOwn(t *testing.T) {
	e := NewEscrow(nil, nil)
	good := escrow.NewToken()
	e.remember(digestOf(good))
	for i := range e.limits.strangers {
		if _, ok := e.enter(fmt.Sprintf("10.0.0.%d:1", i), escrow.NewToken(), func() { t.Error("a stranger makes room although there is some") }); !ok {
			t.Fatalf("stranger %d finds no place", i)
		}
	}
	if _, ok := e.enter("10.0.1.1:1", escrow.NewToken(), nil); ok {
		t.Errorf("more than %d strangers", e.limits.strangers)
	}
	for i := range e.limits.perAddress + 1 {
		if _, ok := e.enter("10.0.1.1:1", good, nil); ok != (i < e.limits.perAddress) {
			t.Errorf("push %d with a good token is let in: %t", i, ok)
		}
	}
}

// Strangers from as many addresses as there are places send slowly. The one that has waited longest makes room, once its body should have come; one
// whose body is there does not.
func TestTheSlowestOfManyStrangersMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEscrow(busy{good: "another"}, nil)
		var ended []int
		var places []*place
		for i := range e.limits.strangers {
			p, ok := e.enter(fmt.Sprintf("10.0.0.%d:1", i), escrow.NewToken(), func() { ended = append(ended, i) })
			if places = append(places, p); !ok {
				t.Fatalf("stranger %d finds no place", i)
			}
		}
		places[0].hasBody()
		if code := pushTo(t, e, "10.0.1.1:1", escrow.NewToken()); code != http.StatusServiceUnavailable || len(ended) > 0 {
			t.Errorf("answered %d, and %v made room before their bodies could come", code, ended)
		}
		time.Sleep(bodyFor)
		if code := pushTo(t, e, "10.0.1.1:1", escrow.NewToken()); code != http.StatusUnauthorized || !slices.Equal(ended, []int{1}) {
			t.Errorf("answered %d, and %v made room", code, ended)
		}
	})
}

// When every place is taken, strangers make room for a token that was good; and a token that was replaced gives nothing any more.
func TestStrangersMakeRoomForAGoodToken(t *testing.T) {
	e := newEscrow(busy{good: "another"}, nil, escrowLimits{requests: 2, strangers: 2, turns: 1, perAddress: 2, put: time.Second})
	good, out := escrow.NewToken(), 0
	e.remember(digestOf(good))
	for i := range 2 {
		if _, ok := e.enter(fmt.Sprintf("10.0.0.%d:1", i), escrow.NewToken(), func() { out++ }); !ok {
			t.Fatalf("stranger %d finds no place", i)
		}
	}
	if code := pushTo(t, e, "10.0.1.1:1", good); code != http.StatusUnauthorized || out != 1 || len(e.places) != 1 {
		t.Errorf("answered %d, %d strangers made room, %d are left", code, out, len(e.places))
	}
	if len(e.good) != 0 {
		t.Error("a token that was replaced has places still")
	}
}

// What is no token at all costs a stranger's push its place, whatever is in its body.
func TestNoPlaceForWhatIsNoToken(t *testing.T) {
	e := newEscrow(busy{}, nil, escrowLimits{}) // no place for anybody
	for _, token := range []string{"x", escrow.NewToken() + "A", escrow.NewToken()[1:] + "!"} {
		if code := pushTo(t, e, "10.0.0.1:1", token); code != http.StatusUnauthorized {
			t.Errorf("%q: answered %d", token, code)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+escrow.NewToken())
	r.ContentLength = wire.MaxKeyringBytes + 1
	w := httptest.NewRecorder()
	if e.ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body: answered %d", w.Code)
	}
}

// What is remembered of tokens is bounded, and ends.
func TestFewGoodTokensAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEscrow(nil, nil)
		for i := range goodMax + 10 {
			e.remember(digestOf(fmt.Sprint(i)))
		}
		if len(e.good) != goodMax {
			t.Errorf("%d are remembered", len(e.good))
		}
		time.Sleep(goodFor)
		if p, _ := e.enter("10.0.0.1:1", "1", nil); !p.stranger {
			t.Error("a token is taken for good for ever")
		}
		if e.remember(digestOf("new")); len(e.good) != 1 {
			t.Errorf("%d are left", len(e.good))
		}
	})
}
