// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

func splitLines(s string) []string { return strings.Split(s, "\n") }

func dialError(t *testing.T) error {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = new(net.Dialer).DialContext(t.Context(), "tcp", closed)
	if err == nil {
		t.Fatalf("a port that was just closed answers: %s", closed)
	}
	return err
}

func TestPushesThatAreRefused(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		otherGroup := told(6, "b")
		otherGroup.Group = "bills"
		otherNamespace := told(6, "b")
		otherNamespace.Namespace = "lab"
		incomplete := told(0, "b")
		for name, tc := range map[string]struct {
			body   any
			code   int
			reason string
		}{
			"another key":    {wire.ActiveSite{Statement: sign(t, stranger, told(6, "b"))}, 401, wire.ReasonBadStatement},
			"no statement":   {wire.ActiveSite{Statement: "x.y.z"}, 401, wire.ReasonBadStatement},
			"incomplete":     {wire.ActiveSite{Statement: sign(t, authority, incomplete)}, 401, wire.ReasonBadStatement},
			"another group":  {wire.ActiveSite{Statement: sign(t, authority, otherGroup)}, 403, wire.ReasonOtherGroup},
			"another space":  {wire.ActiveSite{Statement: sign(t, authority, otherNamespace)}, 403, wire.ReasonOtherGroup},
			"not JSON":       {[]byte("epoch 6"), 400, wire.ReasonBadRequest},
			"much too large": {wire.ActiveSite{Statement: wire.Signed(strings.Repeat("x", wire.MaxBodyBytes))}, 413, wire.ReasonTooLarge},
		} {
			code, body := w.request(http.MethodPut, wire.PathActiveSite, tc.body)
			var told wire.Error
			if err := json.Unmarshal(body, &told); err != nil || code != tc.code || told.Reason != tc.reason || told.Error == "" {
				t.Errorf("%s: %d %s", name, code, body)
			}
		}
		w.mustBe("writable")
	})
}

// The operator asks for the report before there is a statement.
func TestAnEmptyPushOnlyReports(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.boot()
		code, body := w.request(http.MethodPut, wire.PathActiveSite, wire.ActiveSite{})
		var r wire.Report
		if err := json.Unmarshal(body, &r); err != nil || code != 200 || r.Epoch != 0 || !r.SuperReadOnly || !r.Answered {
			t.Errorf("%d %s", code, body)
		}
	})
}

func TestAnOlderPushIsAnsweredWithTheNewerEpoch(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(7, "b")
		w.boot()
		w.after(time.Second)
		if r := w.push(told(6, "a")); r.Epoch != 7 || r.Message == "" || !r.FencedUnder(7) {
			t.Errorf("got %+v", r)
		}
	})
}

// What a push asks for is done to the end even if the client hangs up.
func TestAClientThatHangsUpStopsNoFenceI2(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		hangUp := func(s wire.Statement) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			body, err := json.Marshal(wire.ActiveSite{Statement: sign(t, authority, s)})
			if err != nil {
				t.Fatal(err)
			}
			w.agent.Handler().ServeHTTP(httptest.NewRecorder(),
				httptest.NewRequestWithContext(ctx, http.MethodPut, wire.PathActiveSite, bytes.NewReader(body)))
		}
		w.do(func() { w.operator = wire.Statement{} })
		hangUp(told(6, "b"))
		w.mustBe("read-only")
		w.do(func() { w.operator = told(7, "a") })
		hangUp(told(7, "a"))
		w.mustBe("writable")
	})
}

func TestPeersAreAnswered(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.boot()
		get := func(query url.Values) (int, wire.ActiveSite, wire.Error) {
			t.Helper()
			code, body := w.request(http.MethodGet, wire.PathPeerActiveSite+"?"+query.Encode(), nil)
			var a wire.ActiveSite
			var e wire.Error
			if json.Unmarshal(body, &a) != nil || json.Unmarshal(body, &e) != nil {
				t.Fatalf("%d %s", code, body)
			}
			return code, a, e
		}
		if code, _, e := get(url.Values{"site": {"c"}}); code != 503 || e.Reason != wire.ReasonNoStatement {
			t.Errorf("without a statement: %d %+v", code, e)
		}
		w.do(func() { w.operator = told(5, "c") })
		w.after(3 * time.Second)
		code, a, _ := get(url.Values{"namespace": {"shop"}, "group": {"orders"}, "site": {"c"}})
		if s, err := verify(a.Statement); code != 200 || err != nil || s.Epoch != 5 {
			t.Errorf("got %d, %+v, %v", code, s, err)
		}
		for _, q := range []url.Values{{"namespace": {"lab"}}, {"group": {"bills"}}} {
			if code, _, e := get(q); code != 403 || e.Reason != wire.ReasonOtherGroup {
				t.Errorf("%v: %d %+v", q, code, e)
			}
		}
		for _, site := range []string{"a", "d", ""} {
			if code, _, e := get(url.Values{"site": {site}}); code != 403 || e.Reason != wire.ReasonNotAPeer {
				t.Errorf("it vouched for %q: %d %+v", site, code, e)
			}
		}
		w.after(4 * time.Second)
		r := w.push(told(6, "b"))
		if age := r.VouchAge("c"); age < 4*time.Second || age > 5*time.Second || r.VouchAge("d") < 7*time.Second {
			t.Errorf("vouched for c %v ago, for d %v ago", age, r.VouchAge("d"))
		}
	})
}

// The whole way over real sockets: the client's requests are what the server understands.
func TestTheClientAndTheServerAgree(t *testing.T) {
	w := newWorld(t)
	w.operator = told(5, "a")
	w.boot()
	defer w.end()
	server := httptest.NewServer(w.agent.Handler())
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	c := client.New(nil)
	defer c.Close()

	r, err := c.PushActiveSite(t.Context(), addr, wire.ActiveSite{Statement: sign(t, authority, told(6, "b"))})
	if err != nil || !r.FencedUnder(6) {
		t.Fatalf("%+v, %v", r, err)
	}
	w.do(func() { w.operator = told(6, "b") })
	network := HTTPNetwork{Client: c, OperatorURL: server.URL, Site: fence.Site{Namespace: "shop", Group: "orders", Name: "b"}}
	deadline := time.Now().Add(10 * time.Second)
	for {
		signed, err := network.Peer(t.Context(), addr)
		if s, verr := verify(signed); err == nil && verr == nil && s.Epoch == 6 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the peer was not answered: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := network.Operator(t.Context(), "n"); err == nil {
		t.Error("a sidecar answers no GET /active-site")
	}
}

func TestTheServersTimeoutsAreSet(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.boot()
		s := w.agent.Server(":0")
		if s.ReadTimeout == 0 || s.ReadHeaderTimeout == 0 || s.WriteTimeout == 0 || s.IdleTimeout == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// I9: a site whose MySQL hangs still acknowledges an epoch while the operator listens. If it did not, it would count as one that may
// vouch, and the failover to another site would wait for it.
func TestAReportDoesNotWaitForAMysqldThatHangs(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(time.Second)
		w.do(func() { w.silent = true })
		for _, since := range []time.Duration{0, 3 * time.Second} {
			w.after(since)
			began := time.Now()
			r := w.push(told(6, "c"))
			if took := time.Since(began); took >= wire.ReportPatience*8/10 {
				t.Errorf("the report took %v of the operator's %v", took, wire.ReportPatience)
			}
			// It is no proof of a fence: nobody knows what the process does.
			if r.Epoch != 6 || r.Answered || !r.MysqldRunning || r.FencedUnder(6) {
				t.Errorf("got %+v", r)
			}
			// At first it is what this very look has waited: it answered the one before.
			if silent := time.Duration(r.SilentMillis) * time.Millisecond; silent < since || silent > since+wire.ReportPatience*8/10 {
				t.Errorf("silent for %v, after %v", silent, since)
			}
		}
	})
}
