// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// plant is a group of three sites that all have their pods, behind one port.
type plant struct {
	t     *testing.T
	world *world
	port  string
	tls   *tls.Config // of clients
}

func newPlant(t *testing.T, secure bool) *plant {
	t.Helper()
	p := &plant{t: t, world: newWorld(size{groups: 1, sites: 3})}
	for _, s := range p.world.all {
		s.start("pod-"+s.name, "secret")
	}
	fake := &mysqlds{world: p.world}
	if secure {
		c, err := makeCertificates()
		if err != nil {
			t.Fatal(err)
		}
		if fake.tls, err = c.server(); err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(c.ca) {
			t.Fatal("no CA")
		}
		p.tls = &tls.Config{RootCAs: roots, ServerName: "mysql-g0000-sa.scale.svc", MinVersion: tls.VersionTLS12}
	}
	l := p.listen()
	go fake.serve(l)
	return p
}

func (p *plant) listen() net.Listener {
	p.t.Helper()
	l, err := new(net.ListenConfig).Listen(p.t.Context(), "tcp4", "0.0.0.0:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = l.Close() })
	_, p.port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

func (p *plant) open(site int, password string) *mysql.DB {
	p.t.Helper()
	db, err := mysql.Open(mysql.Target{
		Addr: net.JoinHostPort(p.world.all[site].addr.String(), p.port), User: mysql.AccountOperator, Password: password, TLS: p.tls,
		DialTimeout: 10 * time.Second, QueryTimeout: 10 * time.Second,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = db.Close() })
	return db
}

// The very code with which the operator speaks to MySQL finds in the fake what it would find in a server.
func TestMySQLAsTheOperatorSeesIt(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, secure)
			active, replica := p.open(0, "secret"), p.open(1, "secret")
			before, err := active.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if before.Writable() || before.Replica != nil || before.Executed.IsEmpty() || before.ServerUUID != p.world.all[0].uuid {
				t.Errorf("a site at its start: %+v", before)
			}
			if !p.world.all[0].hear(wire.Statement{ActiveSite: "sa", Epoch: 1}, true) {
				t.Error("the statement names the site, and it does not open")
			}
			p.world.all[0].shared.opened = time.Now().Add(-time.Minute)
			err = replica.Follow(t.Context(), mysql.Source{Host: "mysql-g0000-sa.scale.svc", Port: 3306, User: "r", Password: "x"})
			if err != nil {
				t.Fatal(err)
			}
			follower, err := replica.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			source, err := active.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := follower.Replica
			if r == nil || !r.IORunning || !r.SQLRunning || r.SourceHost != "mysql-g0000-sa.scale.svc" || r.LagSeconds == nil || *r.LagSeconds > 1 {
				t.Errorf("the replica: %+v", r)
			}
			if !source.Writable() || !source.Executed.Contains(follower.Executed) || source.Executed.Equal(before.Executed) {
				t.Errorf("the active site: writable %t, executed %s; the replica has %s", source.Writable(), source.Executed, follower.Executed)
			}
			if st, err := replica.CloneStatus(t.Context()); err != nil || st.State != "" {
				t.Errorf("clone status %+v, %v", st, err)
			}
			if err := replica.DropReplication(t.Context()); err != nil {
				t.Errorf("drop replication: %v", err)
			}
		})
	}
}

func TestMySQLRefusesStrangers(t *testing.T) {
	p := newPlant(t, false)
	if _, err := p.open(0, "guessed").Status(t.Context()); err == nil || !strings.Contains(err.Error(), "1045") {
		t.Errorf("a wrong password: %v", err)
	}
	p.world.all[1].podUID = ""
	if _, err := p.open(1, "secret").Status(t.Context()); err == nil {
		t.Error("a site without a pod answers")
	}
}

func TestSidecarReportsAsItsSiteIs(t *testing.T) {
	p := newPlant(t, false)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(active string, epoch int64) wire.Signed {
		signed, err := wire.Sign(key, wire.Statement{Namespace: "scale", Group: "g0000", ActiveSite: active, Epoch: epoch})
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	// The operator: it says that the first site is active under epoch 3.
	operator := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"statement":"` + string(sign("sa", 3)) + `"}`))
	})}
	up := p.listen()
	go func() { _ = operator.Serve(up) }()
	fake := &sidecars{world: p.world, operator: "http://" + net.JoinHostPort("127.0.0.1", p.port)}
	l := p.listen()
	go func() { _ = fake.server().Serve(l) }()
	push := func(site int, signed wire.Signed) wire.Report {
		t.Helper()
		r, err := client.New(nil).PushActiveSite(t.Context(), net.JoinHostPort(p.world.all[site].addr.String(), p.port), wire.ActiveSite{Statement: signed})
		if err != nil {
			t.Fatal(err)
		}
		return r.Report
	}
	if r := push(0, ""); r.Site != "sa" || r.PodUID != "pod-sa" || r.Writable || !r.Answered || r.Epoch != 0 {
		t.Errorf("before the first epoch: %+v", r)
	}
	if r := push(1, sign("sa", 3)); r.Writable || r.Epoch != 3 || !r.FencedUnder(3) {
		t.Errorf("a site that is not named: %+v", r)
	}
	if r := push(0, sign("sa", 3)); !r.Writable || r.Epoch != 3 {
		t.Errorf("the site that is named asks the operator and opens: %+v", r)
	}
	if r := push(0, sign("sb", 4)); r.Writable || !r.FencedUnder(4) {
		t.Errorf("another site's turn fences: %+v", r)
	}
}

func TestPlan(t *testing.T) {
	p := planOf("SELECT @@GLOBAL.server_uuid, COALESCE(a, ','),\n (SELECT COUNT(*)  FROM t WHERE x IN (1, 2)), c.HOST\nFROM (SELECT 1) one LEFT JOIN c ON c.n = ''")
	if len(p.names) != 4 || p.names[2] != "(SELECT COUNT(*) FROM t WHERE x IN (1, 2))" || p.names[3] != "c.HOST" || !p.row {
		t.Errorf("plan %+v", p)
	}
	if planOf("SELECT c.HOST FROM performance_schema.x c JOIN y USING (z)").row {
		t.Error("a channel that was never configured has a row")
	}
}

func TestAddresses(t *testing.T) {
	w := newWorld(size{groups: 1000, sites: 3})
	if len(w.sites) != 3000 || w.all[0].addr.String() != "127.1.0.1" || w.all[2999].addr.String() != "127.1.11.184" {
		t.Errorf("%d addresses, from %s to %s", len(w.sites), w.all[0].addr, w.all[2999].addr)
	}
	if w.at(w.all[0].addr) != nil {
		t.Error("a site without a pod is there")
	}
}
