// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestAFloodKeepsNoSiteFromItsAnswer: each address has its own share of questions, and a smaller one of the state of groups.
func TestAFloodKeepsNoSiteFromItsAnswer(t *testing.T) {
	s := New(Options{Authority: &authority{}, Source: NewBoard()})
	refused := func() float64 {
		return testutil.ToFloat64(Refused.WithLabelValues(ListenerAuxiliary, wire.ReasonTooManyRequests))
	}
	before := refused()
	ask := func(remote, target string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		r.RemoteAddr = remote
		w := httptest.NewRecorder()
		s.door.Handler(s).ServeHTTP(w, r)
		return w.Code
	}
	const question = "/active-site?namespace=shop&group=orders&site=paris&nonce=n"
	codes := map[int]int{}
	for range 5000 {
		codes[ask("10.0.0.66:1", question)]++
	}
	if codes[http.StatusTooManyRequests] < 2000 || codes[http.StatusOK] < 1000 || refused() == before {
		t.Errorf("a flood got %v, %v refusals were counted", codes, refused()-before)
	}
	if code := ask("10.0.0.1:1", question); code != http.StatusOK {
		t.Errorf("a site got %d", code)
	}
	status := map[int]int{}
	for range 200 {
		status[ask("10.0.0.67:1", "/status")]++
	}
	if status[http.StatusTooManyRequests] < 100 || status[http.StatusOK] < 40 {
		t.Errorf("who asks for the status all the time got %v", status)
	}
	if code := ask("10.0.0.67:1", question); code != http.StatusOK {
		t.Errorf("a site that shares its address with somebody who wants the status got %d", code)
	}
	if code := ask("10.0.0.68:1", question+strings.Repeat("x", wire.MaxQueryBytes)); code != http.StatusRequestURITooLong {
		t.Errorf("a long query got %d", code)
	}
}

// TestStatusIsAnsweredToSoManyAtATime: each answer can be megabytes, and its client can be slow.
func TestStatusIsAnsweredToSoManyAtATime(t *testing.T) {
	s := New(Options{Authority: &authority{}, Source: NewBoard()})
	for range s.limits.statuses {
		s.answering <- struct{}{}
	}
	if w := get(s, http.MethodGet, "/status"); w.Code != http.StatusServiceUnavailable || decode[wire.Error](t, w).Reason != wire.ReasonTooManyClients {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	<-s.answering
	if w := get(s, http.MethodGet, "/status"); w.Code != http.StatusOK || len(s.answering) != s.limits.statuses-1 {
		t.Errorf("got %d", w.Code)
	}
}
