// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// peerQuery is what GET /peer/active-site is asked.
func peerQuery(site string) string {
	return wire.PathPeerActiveSite + "?" + url.Values{"namespace": {"shop"}, "group": {"orders"}, "site": {site}}.Encode()
}

// TestStrangersCannotMakeAReportTooLong is the attack that took groups down for good: a few askers with long names, and every report
// after the next change of the active site was longer than the operator reads, so all sidecars counted as silent.
func TestStrangersCannotMakeAReportTooLong(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "c")
		w.boot()
		w.after(3 * time.Second)
		refusals := map[string]int{}
		for i := range 300 {
			for _, name := range []string{
				strings.Repeat("<", 4000) + fmt.Sprint(i), strings.Repeat("<", 150) + fmt.Sprint(i), fmt.Sprint("site", i), "",
			} {
				code, body := w.request(http.MethodGet, peerQuery(name), nil)
				var e wire.Error
				if json.Unmarshal(body, &e) != nil || code < 400 {
					t.Fatalf("a stranger got %d %s", code, body)
				}
				refusals[fmt.Sprint(code, " ", e.Reason)]++
			}
		}
		if refusals["403 NotAPeer"] != 900 || refusals["414 TooLarge"] != 300 {
			t.Errorf("refused: %v", refusals)
		}
		_, metrics := w.request(http.MethodGet, wire.PathMetrics, nil)
		if line := `sidecar_refused_requests_total{reason="NotAPeer"} 900`; !strings.Contains(string(metrics), line) {
			t.Errorf("the metrics lack %s", line)
		}
		if code, body := w.request(http.MethodGet, peerQuery("c"), nil); code != http.StatusOK {
			t.Fatalf("a peer got %d %s", code, body)
		}
		_, body := w.request(http.MethodPut, wire.PathActiveSite, wire.ActiveSite{Statement: sign(t, authority, told(6, "b"))})
		var r wire.Report
		if err := json.Unmarshal(body, &r); err != nil || len(body) > 4<<10 || len(r.Vouched) != 1 || r.Vouched[0].Site != "c" {
			t.Errorf("a report of %d bytes, vouched %v, %v", len(body), r.Vouched, err)
		}
	})
}

// TestWhatIsTooLongIsLeftOutAndSaidI13: nothing that MySQL holds makes a report longer than what the operator reads.
func TestWhatIsTooLongIsLeftOutAndSaidI13(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	r := bounded(wire.Report{Site: "a", Epoch: 6, SuperReadOnly: true, Answered: true, MysqldRunning: true,
		GTIDExecuted: strings.Repeat("x", wire.MaxReportBytes), Message: long,
		Keyring: &wire.KeyringReport{Trouble: long}, Certificate: &wire.CertificateReport{Problem: long}})
	raw, err := json.Marshal(r)
	if err != nil || len(raw) >= wire.MaxReportBytes || r.GTIDExecuted != wire.GTIDTooLong || !r.FencedUnder(6) {
		t.Errorf("%d bytes, %v: %+v", len(raw), err, r)
	}
	if strings.ContainsRune(string(raw), '\uFFFD') {
		t.Error("a character was cut in two")
	}
	if _, err := gtid.Parse(r.GTIDExecuted); err == nil {
		t.Error("I13: what was left out can be taken for an empty set")
	}
	if r := bounded(wire.Report{GTIDExecuted: "x"}); r.GTIDExecuted != "x" {
		t.Errorf("a short one: %+v", r)
	}
}

// TestAFloodOfReportsSharesItsLooks: there are two connections for looks at MySQL. Hundreds of strangers who ask for a report at once
// must not keep the loop from its own, because a sidecar whose loop hangs is ended with its mysqld; nor the operator from its report.
func TestAFloodOfReportsSharesItsLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.operator = told(5, "a")
		w.boot()
		defer w.end()
		w.after(time.Second)
		w.do(func() { w.looks, w.looksAtOnce, w.lookTakes = 0, 0, 100*time.Millisecond })
		flood, began := sync.WaitGroup{}, time.Now()
		for range 300 {
			flood.Go(func() { w.request(http.MethodPut, wire.PathActiveSite, wire.ActiveSite{}) })
		}
		synctest.Wait()
		r := w.push(told(6, "b"))
		if took := time.Since(began); !r.FencedUnder(6) || took > wire.ReportPatience {
			t.Errorf("the operator's push was answered after %v: %+v", took, r)
		}
		flood.Wait()
		w.do(func() {
			if w.looks > 20 || w.looksAtOnce > 2 {
				t.Errorf("%d looks, %d at once", w.looks, w.looksAtOnce)
			}
			w.lookTakes = 0
		})
	})
}

// TestAReportNeverUsesALookFromBeforeIt: one that was under way when the question came may be from before the fence (I2).
func TestAReportNeverUsesALookFromBeforeItI2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g glances
		var begun []time.Duration
		start := time.Now()
		look := func() bool {
			begun = append(begun, time.Since(start))
			time.Sleep(100 * time.Millisecond)
			return true
		}
		spawn := func(f func()) { go f() }
		first := g.join(spawn, look)
		time.Sleep(50 * time.Millisecond)
		second, third := g.join(spawn, look), g.join(spawn, look)
		if second == first || second != third {
			t.Error("who asked during a look must share the next one")
		}
		<-second.done
		synctest.Wait()
		if len(begun) != 2 || begun[1] < 100*time.Millisecond || !second.current || g.busy {
			t.Errorf("looks began at %v, busy %v", begun, g.busy)
		}
	})
}

// TestPeersAreKnownByTheirAddresses: operator/render makes the addresses, and tests that they look like this.
func TestPeersAreKnownByTheirAddresses(t *testing.T) {
	addrs := []string{"mysql-orders-frankfurt.shop.svc:8090", "mysql-orders-mysql-orders-x.shop.svc:8090", "mysql-orders-.shop.svc:8090", "", "c:8090"}
	if got, want := peerNames("orders", addrs), []string{"frankfurt", "mysql-orders-x", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOldPushesDoNotMakeASiteFloodTheOperator: anybody can send an old statement again, and each makes a site that should be open ask
// the operator. Were it hundreds at a time, the operator would refuse the site's own questions, on which its lease stands.
func TestOldPushesDoNotMakeASiteFloodTheOperator(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.boot()
		w.after(time.Second)
		old := wire.ActiveSite{Statement: sign(t, authority, told(5, "a"))}
		var flood sync.WaitGroup
		for range 300 {
			flood.Go(func() { w.request(http.MethodPut, wire.PathActiveSite, old) })
		}
		flood.Wait()
		w.do(func() {
			if w.askedAtOnce < 2 || w.askedAtOnce > pushAsks+1 {
				t.Errorf("the operator was asked %d times at once", w.askedAtOnce)
			}
			w.operator = told(5, "a")
		})
		if r := w.push(told(5, "a")); r.Message != "" || !r.Writable {
			t.Errorf("the push after the flood: %+v", r)
		}
	})
}
