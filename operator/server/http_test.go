// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
)

// authority records who was answered.
type authority struct {
	err   error
	asked []string
}

func (a *authority) Answer(q wire.Ask) (wire.Signed, error) {
	a.asked = append(a.asked, strings.Join([]string{q.Namespace, q.Group, q.Site, q.Nonce}, "|"))
	if a.err != nil {
		return "", a.err
	}
	return "signed", nil
}

// get sends one request to a server.
func get(s http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type = %q", got)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control = %q", got)
	}
	var body T
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	return body
}

func TestActiveSite(t *testing.T) {
	tests := map[string]struct {
		reason string
		query  string
		err    error
		code   int
		want   string // reason of the error
		asked  []string
	}{
		"Answered": {
			reason: "the authority learns who asked, unescaped", query: "namespace=shop&group=orders&site=paris&nonce=a%2Bb",
			code: 200, asked: []string{"shop|orders|paris|a+b"},
		},
		"WithoutSiteAndNonce": {
			reason: "both are optional", query: "namespace=shop&group=orders",
			code: 200, asked: []string{"shop|orders||"},
		},
		"UnknownParameter":  {reason: "a newer sidecar may say more", query: "namespace=shop&group=orders&x=1", code: 200, asked: []string{"shop|orders||"}},
		"NoNamespace":       {query: "group=orders", code: 400, want: wire.ReasonBadRequest},
		"NoGroup":           {query: "namespace=shop", code: 400, want: wire.ReasonBadRequest},
		"EmptyGroup":        {query: "namespace=shop&group=", code: 400, want: wire.ReasonBadRequest},
		"TwoGroups":         {reason: "which one would it be?", query: "namespace=shop&group=a&group=b", code: 400, want: wire.ReasonBadRequest},
		"LongNamespace":     {query: "group=orders&namespace=" + strings.Repeat("n", 64), code: 400, want: wire.ReasonBadRequest},
		"LongNonce":         {query: "namespace=shop&group=orders&nonce=" + strings.Repeat("n", 129), code: 400, want: wire.ReasonBadRequest},
		"LongestNonce":      {query: "namespace=shop&group=orders&nonce=" + strings.Repeat("n", 128), code: 200, asked: []string{"shop|orders||" + strings.Repeat("n", 128)}},
		"NameWithSlash":     {query: "namespace=shop&group=a%2Fb", code: 400, want: wire.ReasonBadRequest},
		"SiteWithNewline":   {query: "namespace=shop&group=orders&site=a%0Ab", code: 400, want: wire.ReasonBadRequest},
		"NonceWithBlank":    {query: "namespace=shop&group=orders&nonce=a+b", code: 400, want: wire.ReasonBadRequest},
		"BrokenQuery":       {query: "namespace=shop&group=%zz", code: 400, want: wire.ReasonBadRequest},
		"UnknownGroup":      {query: "namespace=shop&group=orders", err: ErrUnknownGroup, code: 404, want: wire.ReasonUnknownGroup, asked: []string{"shop|orders||"}},
		"NotLeading":        {query: "namespace=shop&group=orders", err: ErrNotLeading, code: 503, want: wire.ReasonNotLeading, asked: []string{"shop|orders||"}},
		"NoStatement":       {query: "namespace=shop&group=orders", err: ErrNoStatement, code: 503, want: wire.ReasonNoStatement, asked: []string{"shop|orders||"}},
		"WrappedNotLeading": {query: "namespace=shop&group=orders", err: fmt.Errorf("answer: %w", ErrNotLeading), code: 503, want: wire.ReasonNotLeading, asked: []string{"shop|orders||"}},
		"InternalError":     {reason: "what went wrong inside stays inside", query: "namespace=shop&group=orders", err: errors.New("secret detail"), code: 500, want: wire.ReasonInternal, asked: []string{"shop|orders||"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := &authority{err: tc.err}
			w := get(New(Options{Authority: a, Source: NewBoard()}), http.MethodGet, "/active-site?"+tc.query)
			if w.Code != tc.code {
				t.Errorf("%s: status %d, want %d", tc.reason, w.Code, tc.code)
			}
			if diff := cmp.Diff(tc.asked, a.asked); diff != "" {
				t.Errorf("%s: asked (-want +got):\n%s", tc.reason, diff)
			}
			if tc.want == "" {
				if got := decode[wire.ActiveSite](t, w).Statement; got != "signed" {
					t.Errorf("statement = %q", got)
				}
				return
			}
			if got := decode[wire.Error](t, w); got.Reason != tc.want || got.Error == "" || strings.Contains(got.Error, "secret") {
				t.Errorf("%s: error = %+v, want reason %s", tc.reason, got, tc.want)
			}
			if got := w.Header().Get("Connection"); (got == "close") != (tc.want == wire.ReasonNotLeading) {
				t.Errorf("Connection = %q: only who does not lead ends it", got)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	tests := map[string]struct {
		query  string
		lost   bool
		code   int
		want   []string
		reason string
	}{
		"All":        {code: 200, want: []string{"accounts=1", "orders=1"}},
		"ByGroup":    {query: "?namespace=shop&group=orders", code: 200, want: []string{"orders=1"}},
		"ByNS":       {query: "?namespace=other", code: 200, want: []string{}},
		"BadFilter":  {query: "?namespace=a/b", code: 400, reason: wire.ReasonBadRequest},
		"NotLeading": {lost: true, code: 503, reason: wire.ReasonNotLeading},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := NewBoard()
			b.Publish(group("orders", "1"))
			b.Publish(group("accounts", "1"))
			s := New(Options{Authority: &authority{}, Source: b, Operator: "v0.1.0", Leading: func() bool { return !tc.lost }})
			w := get(s, http.MethodGet, "/status"+tc.query)
			if w.Code != tc.code {
				t.Fatalf("status %d, want %d", w.Code, tc.code)
			}
			if tc.code != 200 {
				if got := decode[wire.Error](t, w); got.Reason != tc.reason {
					t.Errorf("reason = %q, want %q", got.Reason, tc.reason)
				}
				return
			}
			got := decode[wire.StatusList](t, w)
			if diff := cmp.Diff(tc.want, messages(got.Groups)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Operator != "v0.1.0" || got.IssuedAt.IsZero() {
				t.Errorf("operator %q issued at %v", got.Operator, got.IssuedAt)
			}
			if !strings.Contains(w.Body.String(), `"groups":[`) {
				t.Errorf("an empty list must be [], not null: %s", w.Body)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	s := New(Options{Authority: &authority{}, Source: NewBoard()})
	for target, tc := range map[string]struct {
		method string
		code   int
		reason string
	}{
		"/active-site?namespace=shop&group=orders": {http.MethodPut, 405, wire.ReasonMethodNotAllowed},
		"/status":    {http.MethodHead, 405, wire.ReasonMethodNotAllowed},
		"/ws/status": {http.MethodPost, 405, wire.ReasonMethodNotAllowed},
		"/":          {http.MethodGet, 404, wire.ReasonNotFound},
		"/status/":   {http.MethodGet, 404, wire.ReasonNotFound},
		// It is for the listener with TLS alone.
		wire.PathKeyringEscrow:          {http.MethodPost, 404, wire.ReasonNotFound},
		"/" + strings.Repeat("a", 5000): {http.MethodGet, 404, wire.ReasonNotFound},
	} {
		w := get(s, tc.method, target)
		if w.Code != tc.code {
			t.Errorf("%s %s: status %d, want %d", tc.method, shorten(target), w.Code, tc.code)
		}
		if got := decode[wire.Error](t, w); got.Reason != tc.reason || len(got.Error) > 200 {
			t.Errorf("%s %s: %+v, want reason %s", tc.method, shorten(target), got, tc.reason)
		}
		if got := w.Header().Get("Allow"); (got == http.MethodGet) != (tc.code == 405) {
			t.Errorf("%s %s: Allow = %q", tc.method, shorten(target), got)
		}
	}
}

// BenchmarkStatus1000 is one GET /status of 1000 groups.
func BenchmarkStatus1000(b *testing.B) {
	board := NewBoard()
	for _, g := range manyGroups(1000)[0] {
		board.Publish(g)
	}
	s := New(Options{Authority: &authority{}, Source: board})
	b.ReportAllocs()
	for b.Loop() {
		w := get(s, http.MethodGet, "/status")
		b.ReportMetric(float64(w.Body.Len()), "bytes/answer")
	}
}
