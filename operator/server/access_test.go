// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestOnlyWhoMayGetTheGroupsReadsThem: by namespace, by token, and never by guess.
func TestOnlyWhoMayGetTheGroupsReadsThem(t *testing.T) {
	asked := []string{}
	s := New(Options{Authority: &authority{}, Source: NewBoard(), Authorize: func(_ context.Context, token, namespace string) error {
		asked = append(asked, token+"@"+namespace)
		switch {
		case token == "away":
			return errors.New("the API server is away")
		case token != "good":
			return wire.ErrUnauthorized
		case namespace != "shop":
			return wire.ErrForbidden
		}
		return nil
	}})
	for name, tc := range map[string]struct {
		remote, token, target string
		code                  int
		reason                string
	}{
		"may":             {"10.0.0.1:1", "good", "/status?namespace=shop", http.StatusOK, ""},
		"another":         {"10.0.0.1:1", "good", "/status?namespace=bank", http.StatusForbidden, wire.ReasonForbidden},
		"all":             {"10.0.0.1:1", "good", "/status", http.StatusForbidden, wire.ReasonForbidden},
		"a stranger":      {"10.0.0.1:1", "bad", "/status?namespace=shop", http.StatusUnauthorized, wire.ReasonUnauthorized},
		"nobody":          {"10.0.0.1:1", "", "/status?namespace=shop", http.StatusUnauthorized, wire.ReasonUnauthorized},
		"stream":          {"10.0.0.1:1", "", "/ws/status?namespace=shop", http.StatusUnauthorized, wire.ReasonUnauthorized},
		"explained":       {"10.0.0.1:1", "", "/status?explain=true&namespace=shop&group=orders", http.StatusUnauthorized, wire.ReasonUnauthorized},
		"no answer":       {"10.0.0.1:1", "away", "/status?namespace=shop", http.StatusServiceUnavailable, wire.ReasonInternal},
		"port-forward":    {"127.0.0.1:1", "", "/status", http.StatusOK, ""},
		"port-forward, 6": {"[::1]:1", "", "/status", http.StatusOK, ""},
		"a mesh":          {"127.0.0.6:1", "", "/status", http.StatusUnauthorized, wire.ReasonUnauthorized},
		"a sidecar":       {"10.0.0.1:1", "", "/active-site?namespace=shop&group=orders&site=paris&nonce=n", http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.target, http.NoBody)
			r.RemoteAddr = tc.remote
			if tc.token != "" {
				r.Header.Set("Authorization", "Bearer "+tc.token)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != tc.code || tc.reason != "" && decode[wire.Error](t, w).Reason != tc.reason {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	if len(asked) != 5 {
		t.Errorf("asked %q: who sends no token, and sidecars, need no review", asked)
	}
}
