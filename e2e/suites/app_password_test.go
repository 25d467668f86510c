// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// applicationsPassword follows docs/install.md on the application of a group: it can log in, its password is replaced, and the old one is ended. At
// each step every site lets it in with what an application may have at that moment.
func applicationsPassword(t *testing.T, g *stage.Group) {
	t.Helper()
	onPage(t, "the application", true)
	before := applicationsSecret(t, g)
	onPage(t, "another password of the application", true)
	now := applicationsSecret(t, g)
	if now["password"] == before["password"] || now[v1alpha1.ApplicationNextPassword] != "" || !strings.Contains(now["uri"], now["password"]) || !strings.Contains(now["jdbc-uri"], now["password"]) {
		t.Fatal("the Secret does not have another password in all of its keys")
	}
	for _, secret := range []map[string]string{before, now} {
		for site, err := range letIn(t, g, secret) {
			if err != nil {
				t.Errorf("%s, before the old password is ended: %v", site, err)
			}
		}
	}
	onPage(t, "the old password of the application", true)
	for site, err := range letIn(t, g, now) {
		if err != nil {
			t.Errorf("%s, after the old password was ended: %v", site, err)
		}
	}
	if err := stage.Poll(t.Context(), time.Minute, "every site to refuse the old password", func(context.Context) error {
		for site, err := range letIn(t, g, before) {
			if err == nil {
				return fmt.Errorf("%s takes it", site)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if after := applicationsSecret(t, g); after["password"] != now["password"] {
		t.Error("the end of the old password changed the Secret")
	}
	onPage(t, "an account that reads", true)
	as := []string{"-n", g.Namespace, "mysql", g.Name, "--account", "readonly", "-e"}
	for _, one := range []struct {
		statement, says string
		code            int
	}{{"SELECT CURRENT_USER()", "readonly@%", 0}, {"CREATE TABLE readers (id INT PRIMARY KEY)", "ERROR 1142", 1}} {
		if got := plugin(t, append(as, one.statement)...); got.code != one.code || !strings.Contains(got.out+got.errOut, one.says) {
			t.Errorf("as readonly, %s: exit code %d: %s%s", one.statement, got.code, got.out, got.errOut)
		}
	}
	plugin(t, "-n", g.Namespace, "account", "drop", g.Name, "--yes").want(t, 0, nil)
	if got := plugin(t, append(as, "SELECT 1")...); got.code == 0 || !strings.Contains(got.errOut, "kubectl mfg account create") {
		t.Errorf("after it was dropped: exit code %d: %s%s", got.code, got.out, got.errOut)
	}
}

func applicationsSecret(t *testing.T, g *stage.Group) map[string]string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := g.Kube.Get(t.Context(), client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.ApplicationSecret(g.Name)}, secret); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for key, value := range secret.Data {
		out[key] = string(value)
	}
	return out
}

// letIn logs in at every site of the group with what is in a Secret of its application.
func letIn(t *testing.T, g *stage.Group, secret map[string]string) map[string]error {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]error{}
	for _, site := range group.Spec.Sites {
		pod, err := g.Pod(t.Context(), site.Name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := mysql.NewConfig()
		cfg.User, cfg.Passwd, cfg.Net, cfg.Addr = secret["username"], secret["password"], "tcp", net.JoinHostPort(pod.Status.PodIP, "3306")
		cfg.Timeout, cfg.AllowNativePasswords = 5*time.Second, false
		cfg.TLSConfig = "skip-verify" // the group requires TLS; whose certificate it is other tests look at
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		out[site.Name] = db.PingContext(t.Context())
		_ = db.Close() // it was asked
	}
	return out
}
