// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
)

// each runs a test with every client that there is.
func each(t *testing.T, test func(*testing.T, *client.Client)) {
	t.Helper()
	for name, c := range map[string]*client.Client{"the zero value": {}, "plain": client.New(nil), "frugal": client.NewFrugal(nil)} {
		t.Run(name, func(t *testing.T) {
			defer c.Close()
			test(t, c)
		})
	}
}

// serve starts a server with one handler and returns its base URL and its host:port.
func serve(t *testing.T, handler http.HandlerFunc) (base, addr string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, strings.TrimPrefix(server.URL, "http://")
}

func answer(t *testing.T, w http.ResponseWriter, code int, body any) {
	t.Helper()
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		t.Error(err)
	}
}

func TestActiveSiteAsksWithItsQuery(t *testing.T) { each(t, testActiveSiteAsksWithItsQuery) }

func testActiveSiteAsksWithItsQuery(t *testing.T, c *client.Client) {
	t.Helper()
	asked := map[string]string{}
	base, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path] = r.URL.RawQuery
		answer(t, w, http.StatusOK, wire.ActiveSite{Statement: wire.Signed("signed by " + r.URL.Path)})
	})
	q := client.ActiveSiteQuery{Namespace: "shop", Group: "orders", Site: "a", Nonce: "n1"}

	fromOperator, err := c.OperatorActiveSite(t.Context(), base+"/", q)
	if err != nil {
		t.Fatal(err)
	}
	fromPeer, err := c.PeerActiveSite(t.Context(), addr, client.ActiveSiteQuery{Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	if fromOperator != "signed by /active-site" || fromPeer != "signed by /peer/active-site" {
		t.Errorf("got %q and %q", fromOperator, fromPeer)
	}
	want := map[string]string{
		"/active-site":      "group=orders&namespace=shop&nonce=n1&site=a",
		"/peer/active-site": "group=orders&namespace=shop",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestPushSendsTheStatementAndReturnsTheReport(t *testing.T) {
	each(t, testPushSendsTheStatementAndReturnsTheReport)
}

func testPushSendsTheStatementAndReturnsTheReport(t *testing.T, c *client.Client) {
	t.Helper()
	want := wire.Report{Site: "b", Epoch: 7, MysqldRunning: true, Answered: true, SuperReadOnly: true}
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPut || r.URL.Path != wire.PathActiveSite || string(body) != `{"statement":"s","challenge":"c"}` {
			t.Errorf("got %s %s %s", r.Method, r.URL, body)
		}
		answer(t, w, http.StatusOK, want)
	})
	got, err := c.PushActiveSite(t.Context(), addr, wire.ActiveSite{Statement: "s", Challenge: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wire.Answer{Report: want}, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestStatusMayBeLongerThanOtherBodies(t *testing.T) {
	each(t, testStatusMayBeLongerThanOtherBodies)
}

func testStatusMayBeLongerThanOtherBodies(t *testing.T, c *client.Client) {
	t.Helper()
	want := wire.StatusList{Operator: strings.Repeat("x", wire.MaxBodyBytes*2)}
	base, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(t, w, http.StatusOK, want) })
	got, err := c.Status(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	if got.Operator != want.Operator {
		t.Errorf("got %d bytes", len(got.Operator))
	}
}

func TestErrorsAreTyped(t *testing.T) { each(t, testErrorsAreTyped) }

func testErrorsAreTyped(t *testing.T, c *client.Client) {
	t.Helper()
	for name, tc := range map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    client.StatusError
	}{
		"one of ours": {
			reason: "the caller branches on the reason",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, `{"error":"none yet","reason":"NoStatement"}`)
			},
			want: client.StatusError{Code: 503, Reason: wire.ReasonNoStatement, Message: "none yet"},
		},
		"somebody else's": {
			reason: "a web page must not be taken for a reason",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadGateway)
				_, _ = io.WriteString(w, `<html>`)
			},
			want: client.StatusError{Code: 502},
		},
		"a redirect": {
			reason: "an answer counts only if the one that was asked gave it",
			handler: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			},
			want: client.StatusError{Code: 302},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, addr := serve(t, tc.handler)
			_, err := c.PeerActiveSite(t.Context(), addr, client.ActiveSiteQuery{})
			var got *client.StatusError
			if !errors.As(err, &got) {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUnusableAnswers(t *testing.T) { each(t, testUnusableAnswers) }

func testUnusableAnswers(t *testing.T, c *client.Client) {
	t.Helper()
	for name, body := range map[string]string{
		"too large":    `{"statement":"` + strings.Repeat("x", wire.MaxBodyBytes) + `"}`,
		"not JSON":     `statement`,
		"no statement": `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			base, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
			signed, err := c.OperatorActiveSite(t.Context(), base, client.ActiveSiteQuery{})
			if err == nil {
				t.Errorf("got %.40q", signed)
			}
			if name == "too large" && !errors.Is(err, client.ErrTooLarge) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestADeadlineEndsTheRequest(t *testing.T) { each(t, testADeadlineEndsTheRequest) }

func testADeadlineEndsTheRequest(t *testing.T, c *client.Client) {
	t.Helper()
	hang := make(chan struct{})
	base, _ := serve(t, func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.OperatorActiveSite(ctx, base, client.ActiveSiteQuery{Nonce: "secret-nonce"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "secret-nonce") {
		t.Errorf("the query is in the error: each try would be another log line: %v", err)
	}
}

func TestNoProxyIsUsed(t *testing.T) {
	transport, ok := client.New(nil).HTTP.Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Error("a proxy could answer for a site that is cut off")
	}
}
