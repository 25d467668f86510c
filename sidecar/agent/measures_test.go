// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mysql-mfg/mfg/api/wire"
)

// stuck are series that never come.
type stuck struct{ until chan struct{} }

func (stuck) Describe(chan<- *prometheus.Desc) {}

func (s stuck) Collect(chan<- prometheus.Metric) { <-s.until }

// Scrapes that hang, as many as strangers like, keep the site from nothing: it keeps its lease while it is renewed, and is fenced when it
// is over. A scrape beyond the two that are collected is refused.
func TestScrapesThatHangHoldNoFenceBack(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		s := stuck{make(chan struct{})}
		w.agent.metrics.registry.MustRegister(s)
		handler, codes := w.agent.Handler(), make(chan int, 20)
		for range 20 {
			go func() {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, wire.PathMetrics, nil))
				codes <- answer.Code
			}()
		}
		w.after(30 * time.Second)
		w.mustBe("writable")
		w.do(func() { w.operator = wire.Statement{} })
		w.after(25 * time.Second)
		w.mustBe("read-only")
		close(s.until)
		for range 20 {
			if code := <-codes; code != http.StatusServiceUnavailable {
				t.Errorf("a scrape that hangs was answered with %d", code)
			}
		}
	})
}

// Answers is what the last look found.
func TestAnswers(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		if !w.agent.Answers() {
			t.Error("a server that answers is said not to")
		}
		w.do(func() { w.silent = true })
		w.after(3 * time.Second)
		if w.agent.Answers() {
			t.Error("a server that answers nothing is said to")
		}
	})
}
