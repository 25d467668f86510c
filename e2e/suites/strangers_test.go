// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// sidecars are the addresses of the sidecars.
func sidecars(t *testing.T, g *stage.Group) map[string]string {
	t.Helper()
	addrs := map[string]string{}
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		addrs[site] = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(wire.PortSidecar))
	}
	return addrs
}

// Nine questions with long names to each sidecar once took a group down for good: all reports were too long for the operator.
func TestLongAskersDoNotStopAGroup(t *testing.T) {
	g, _ := whole(t)
	w := witnesses(t, g)
	at := load.Now()
	for site, addr := range sidecars(t, g) {
		for i := range 9 {
			q := url.Values{"namespace": {g.Namespace}, "group": {g.Name}, "site": {fmt.Sprint(i, strings.Repeat("<", 900))}}
			askAs(t, site, "http://"+addr+wire.PathPeerActiveSite+"?"+q.Encode())
			q.Set("site", fmt.Sprint(i, strings.Repeat("<", 100)))
			askAs(t, site, "http://"+addr+wire.PathPeerActiveSite+"?"+q.Encode())
		}
	}
	moveRole(t, g)
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	nothingLost(t, w, at, "Requested")
}

func askAs(t *testing.T, site, address string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 400 || resp.StatusCode >= 500 {
		t.Errorf("%s answered a stranger with %s", site, resp.Status)
	}
}
