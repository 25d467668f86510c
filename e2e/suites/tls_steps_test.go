// SPDX-License-Identifier: Apache-2.0

//go:build lab && (more || long)

package suites

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

const (
	plainNamespace = "suite-later"
	plainGroup     = "later"
)

// plainly is a group without TLS that is whole.
func plainly(t *testing.T) (*stage.Group, v1alpha1.MysqlFailoverGroupSpec) {
	t.Helper()
	g := fresh(t, plainNamespace, plainGroup, lab.Namespace)
	with := stage.DefaultSpec(plainGroup)
	without := stage.DefaultSpec(plainGroup)
	without.TLS = nil
	for _, spec := range []*v1alpha1.MysqlFailoverGroupSpec{&with, &without} {
		spec.Failover.OnDivergence = v1alpha1.DivergenceReclone // so that nobody has to decide of a site that comes back
	}
	g = ownGroup(t, g, without)
	if _, err := g.AwaitReady(t.Context(), bringUp); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Await(t.Context(), 2*time.Minute, "the operator to say that it knows the steps", func(group *v1alpha1.MysqlFailoverGroup) error {
		return stage.NotSecure(group, v1alpha1.TLSPlain)
	}); err != nil {
		t.Fatal(err)
	}
	if err := g.Certify(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	return g, with
}

// comesTo waits until the group has come to a step, and every site is as it is meant there.
func comesTo(t *testing.T, g *stage.Group, phase v1alpha1.TLSPhase) *v1alpha1.MysqlFailoverGroup {
	t.Helper()
	want := map[bool]string{true: "1", false: "0"}[phase == v1alpha1.TLSRequired]
	group, err := g.Await(t.Context(), 2*rolling, "TLS to come to "+string(phase), func(group *v1alpha1.MysqlFailoverGroup) error {
		if err := stage.NotSecure(group, phase); err != nil {
			return err
		}
		// The phase is durable before the update that it asks for begins.
		for _, site := range stage.Sites {
			got, err := g.RootSQL(t.Context(), site, "SELECT @@GLOBAL.require_secure_transport")
			if err != nil {
				return err
			}
			if got = strings.TrimSpace(got); got != want {
				return fmt.Errorf("%s: require_secure_transport = %s", site, got)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// verified fails the test if a replica does not verify its source, or a site does not treat clients without TLS as it should.
func verified(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup, requires string) {
	t.Helper()
	for _, site := range stage.Sites {
		if got := query(t, g, site, "SELECT @@GLOBAL.require_secure_transport"); got != requires {
			t.Errorf("%s: require_secure_transport = %s, want %s", site, got, requires)
		}
		if site == group.Status.ActiveSite {
			continue
		}
		got := query(t, g, site, "SELECT CONCAT(c.SSL_VERIFY_SERVER_CERTIFICATE, ' ', c.SSL_CA_FILE, ' ', s.SERVICE_STATE) FROM "+
			"performance_schema.replication_connection_configuration c JOIN performance_schema.replication_connection_status s USING (CHANNEL_NAME)")
		if got != "YES /etc/mfg-tls/ca.crt ON" {
			t.Errorf("%s: its receiver is %q", site, got)
		}
	}
	for _, site := range stage.Sites {
		plain := query(t, g, site, "SELECT COUNT(*) FROM performance_schema.threads WHERE CONNECTION_TYPE = 'TCP/IP' AND PROCESSLIST_USER LIKE 'mfg%'")
		if plain != "0" {
			t.Errorf("%s: %s connections of the group's own are in plain text", site, plain)
		}
	}
}

// Under load a group without TLS gets it: with the certificate its role moves once by plan, and again when its clients have to use TLS.
// Nothing is lost, and clients meet nothing but those two moves. Until a person says so they connect as they did.
func TestTLSComesUnderLoad(t *testing.T) {
	t.Parallel()
	g, with := plainly(t)
	w := witnesses(t, g)
	at := load.Now()
	if err := setSpec(t.Context(), g, func(spec *v1alpha1.MysqlFailoverGroupSpec) { spec.TLS = with.TLS }); err != nil {
		t.Fatal(err)
	}
	group := comesTo(t, g, v1alpha1.TLSClients)
	if _, err := g.Await(t.Context(), 2*time.Minute, "the writers to be counted", func(group *v1alpha1.MysqlFailoverGroup) error {
		for _, site := range group.Status.TLS.Sites {
			if site.Name == group.Status.ActiveSite && site.PlainConnections > 0 {
				return nil
			}
		}
		return fmt.Errorf("status.tls.sites %+v", group.Status.TLS.Sites)
	}); err != nil {
		t.Error(err)
	}
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	nothingLost(t, w, at, "OrderedUpdate")
	verified(t, g, group, "0")

	if err := g.UseTLS(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	w, err := g.StartWitnesses(t.Context(), "tls-required")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Abandon(context.Background()) })
	at = load.Now()
	if err := setSpec(t.Context(), g, func(spec *v1alpha1.MysqlFailoverGroupSpec) { spec.TLS.PlainConnections = v1alpha1.PlainRefuse }); err != nil {
		t.Fatal(err)
	}
	group = comesTo(t, g, v1alpha1.TLSRequired)
	nothingLost(t, w, at, "OrderedUpdate")
	verified(t, g, group, "1")
	checkEvent(t, g, "TLSStep", "")
}
