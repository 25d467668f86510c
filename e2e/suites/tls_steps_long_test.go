// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"errors"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The node of the active site dies while one replica has the certificate and the others have none: the failover is as any other, and the
// steps go on when the site is back.
func TestAFailoverWhileTLSComes(t *testing.T) {
	g, with := plainly(t)
	before, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	active := before.Status.ActiveSite
	w := witnesses(t, g)
	o := watchOrder(t, g)
	if err := setSpec(t.Context(), g, func(spec *v1alpha1.MysqlFailoverGroupSpec) { spec.TLS = with.TLS }); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Await(t.Context(), rolling, "one replica to have the certificate", func(group *v1alpha1.MysqlFailoverGroup) error {
		if err := o.look(t.Context(), g); err != nil {
			return err
		}
		if len(o.sites) == 0 {
			return errors.New("no pod was replaced yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
	kill := fault(t, "node-kill")
	at, err := g.Break(t.Context(), kill, active)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AwaitRecovery(t.Context(), kill, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	sleep(t, 20*time.Second)
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if group.Status.TLS == nil || group.Status.TLS.Phase != v1alpha1.TLSCertificates || group.Status.ActiveSite == active {
		t.Errorf("with a site away: status.tls %+v, active site %s", group.Status.TLS, group.Status.ActiveSite)
	}
	if err := w.StopService(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.Undo(t.Context(), kill, active); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitExactLoss(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	v, _ := judge(t, w, at)
	checkLoss(t, g, v)
	verified(t, g, comesTo(t, g, v1alpha1.TLSClients), "0")

	// Clients have to use TLS, and then a forgotten one is let in again.
	if err := g.UseTLS(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		plain    v1alpha1.PlainConnections
		phase    v1alpha1.TLSPhase
		requires string
	}{{v1alpha1.PlainRefuse, v1alpha1.TLSRequired, "1"}, {v1alpha1.PlainAllow, v1alpha1.TLSClients, "0"}} {
		if err := setSpec(t.Context(), g, func(spec *v1alpha1.MysqlFailoverGroupSpec) { spec.TLS.PlainConnections = step.plain }); err != nil {
			t.Fatal(err)
		}
		verified(t, g, comesTo(t, g, step.phase), step.requires)
	}
}
