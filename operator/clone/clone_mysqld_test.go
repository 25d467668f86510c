// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package clone

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

// realAccess reaches servers on this machine.
type realAccess map[string]*mysqltest.Server

func (a realAccess) Site(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site, _ string) (mysql.Target, error) {
	return a[site].Target(mysql.AccountOperator, mysqltest.Passwords.Operator), nil
}

func (a realAccess) Donor(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site string) (mysql.Donor, error) {
	return mysql.Donor{Host: "127.0.0.1", Port: a[site].Port, User: mysql.AccountClone, Password: mysqltest.Passwords.Clone}, nil
}

// A replica that follows and has a transaction of its own is cloned again by order, with real servers.
func TestOrderedCloneOfARealReplica(t *testing.T) {
	servers := realAccess{"a": mysqltest.Start(t, mysqltest.Options{}), "b": mysqltest.Start(t, mysqltest.Options{})}
	a, b := servers["a"], servers["b"]
	if err := a.Sidecar(t).OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Exec(t, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)")
	source := mysql.Source{Host: "127.0.0.1", Port: a.Port, User: mysql.AccountReplication, Password: mysqltest.Passwords.Replication}
	if err := b.Operator(t).Follow(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	status := func(s *mysqltest.Server) mysql.Status {
		st, err := s.Operator(t).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	mysqltest.Eventually(t, "b catches up", func() bool { return status(b).Executed.Equal(status(a).Executed) })
	b.Exec(t, "SET GLOBAL super_read_only = OFF", "INSERT INTO shop.t VALUES (99)", "SET GLOBAL super_read_only = ON")

	facts := &scopetest.Facts{}
	facts.Open("a")
	for site, s := range servers {
		facts.Set(site, scope.SiteFacts{MysqlUp: true, Writable: site == "a", Diverged: site == "b",
			AdminAddr: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.AdminPort))})
	}
	ended := make(chan types.NamespacedName, 1)
	runner := &work.Runner{}
	// Start in a goroutine may come after the first begin, which then does nothing.
	runner.Lead(t.Context())
	t.Cleanup(runner.Wait)
	p := newProvisioner(&scope.Base{Recorder: events.NewRecorder(&scopetest.Events{})},
		Options{Work: work.New(), Runner: runner, Reach: work.Reach{Facts: facts, Access: servers, Dial: work.Dial}})
	p.done, p.news = func(key types.NamespacedName) { ended <- key }, func(types.NamespacedName) {}
	run := func(o order) work.Outcome {
		t.Helper()
		p.begin(scopetest.Group(), "b", o)
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Fatal("the job did not end")
		}
		out, _ := p.work.Result(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		p.work.Release(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		p.work.Drop(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		return out
	}

	if o := run(order{value: "b"}); o.Cloned || status(b).Executed.Equal(status(a).Executed) {
		t.Errorf("without confirmation: %+v", o)
	}
	if o := run(order{value: "b:confirm"}); o.Verdict != work.VerdictAdopt || !o.Cloned {
		t.Fatalf("with it: %+v", o)
	}
	st := status(b)
	if !st.Executed.Equal(status(a).Executed) || !st.SuperReadOnly || st.OfflineMode || st.Channels != 0 {
		t.Errorf("after the clone: %+v", st)
	}
	if err := b.Operator(t).Follow(t.Context(), source); err != nil {
		t.Error(err)
	}
}
