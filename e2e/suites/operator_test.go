// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// The operator runs under its own account. What it must not do is refused, and it never asks for what it may not do.
func TestOperatorRights(t *testing.T) {
	whole(t)
	account := "system:serviceaccount:" + stage.OperatorNamespace + ":mfg-operator"
	for question, want := range map[string]string{
		"list mysqlfailovergroups.mysql-mfg.io -A":                    "yes",
		"patch mysqlfailovergroups.mysql-mfg.io --subresource=status": "yes",
		"delete mysqlfailovergroups.mysql-mfg.io":                     "no",
		"delete nodes":                   "no",
		"delete namespaces":              "no",
		"create pods":                    "no",
		"delete pods":                    "yes",
		"create pods --subresource=exec": "no",
		"create clusterroles.rbac.authorization.k8s.io":         "no",
		"escalate clusterroles.rbac.authorization.k8s.io":       "no",
		"bind clusterroles.rbac.authorization.k8s.io":           "no",
		"impersonate serviceaccounts":                           "no",
		"create serviceaccounts --subresource=token":            "no",
		"update customresourcedefinitions.apiextensions.k8s.io": "no",
	} {
		args := append([]string{"-n", namespace, "auth", "can-i", "--as=" + account}, strings.Fields(question)...)
		out, _ := lab.Lab.Kubectl(t.Context(), args...) // it ends with status 1 for a no
		answer := strings.TrimSpace(out)
		if i := strings.LastIndexByte(answer, '\n'); i >= 0 {
			answer = answer[i+1:]
		}
		if !strings.HasPrefix(answer, want) {
			t.Errorf("may the operator %s? %q, want %s", question, out, want)
		}
	}
	// The first test of this file, because the others replace the operator and with it its log.
	log, err := lab.OperatorLog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log) {
		// Not every "forbidden" is about rights: a namespace on its way out forbids new objects too.
		if strings.Contains(line, "forbidden: User") {
			t.Errorf("the operator was refused: %s", line)
		}
	}
}

// withoutOperator ends the operator and brings it back at the end of the test at the latest.
func withoutOperator(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := lab.ScaleOperator(context.Background(), 1); err != nil {
			t.Errorf("bring the operator back: %v", err)
		}
	})
	if err := lab.ScaleOperator(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

// The boot rule. Without the operator the active site goes on, because its peers vouch for it; once it restarts it must
// stay closed until the operator itself says that it is active.
func TestPrimaryThatRestartsWaitsForTheOperator(t *testing.T) {
	g, before := whole(t)
	w := witnesses(t, g)
	site := before.Status.ActiveSite
	withoutOperator(t)

	gone := load.Now()
	sleep(t, lease+5*time.Second)
	if err := w.Service.AwaitCommit(t.Context(), 30*time.Second); err != nil {
		t.Errorf("the active site closed though its peers can be reached: %v", err)
	}
	restarted := load.Now()
	if err := stage.DeletePod(t.Context(), g, site); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), 2*time.Minute, "the new pod of "+site+" to answer", func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, site, "SELECT @@super_read_only")
		if err == nil && strings.TrimSpace(out) != "1" {
			err = fmt.Errorf("super_read_only = %s", strings.TrimSpace(out))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	answered := load.Now()
	// Nothing opens it now, however long one waits.
	sleep(t, 15*time.Second)
	if got := query(t, g, site, "SELECT @@super_read_only"); got != "1" {
		t.Errorf("super_read_only = %s without an operator", got)
	}
	returned := load.Now()
	if err := lab.ScaleOperator(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Service.AwaitCommit(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	v, testimony := judge(t, w, restarted)
	checkLoss(t, g, v)
	for _, c := range testimony.Service.Commits {
		if c.Ack > answered && c.Start < returned {
			t.Errorf("a row was accepted by %s %s after its pod came back, without an operator", c.Site, c.Ack-answered)
			break
		}
	}
	if v.Pause.LastAck < gone+lease {
		t.Errorf("the clients' longest pause began %s after the operator went: it must begin with the restart", v.Pause.LastAck-gone)
	}
}

// A new operator knows nothing of the answers that the old one gave, and must not disturb a healthy group.
func TestOperatorRestartDisturbsNobody(t *testing.T) {
	g, before := whole(t)
	w := witnesses(t, g)
	at := load.Now()
	if _, err := lab.Lab.Kubectl(t.Context(), "-n", stage.OperatorNamespace, "rollout", "restart", "deployment/"+stage.OperatorName); err != nil {
		t.Fatal(err)
	}
	if err := lab.AwaitOperator(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	sleep(t, 8*time.Second)
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
	after, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.Epoch != before.Status.Epoch {
		t.Errorf("epoch went from %d to %d", before.Status.Epoch, after.Status.Epoch)
	}
}

func TestEndpointsAnswer(t *testing.T) {
	g, group := whole(t)
	t.Run("status", func(t *testing.T) {
		list, err := lab.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range list.Groups {
			if got.Namespace != g.Namespace || got.Group != g.Name {
				continue
			}
			if got.ActiveSite != group.Status.ActiveSite || got.Epoch != group.Status.Epoch || len(got.Sites) != 3 {
				t.Errorf("/status says %+v", got)
			}
			for _, site := range got.Sites {
				if !site.Reachable || !site.SidecarReachable || site.Writable != (site.Name == got.ActiveSite) {
					t.Errorf("/status says of %s: %+v", site.Name, site)
				}
			}
			return
		}
		t.Errorf("/status does not know the group: %+v", list)
	})
	t.Run("metrics of the operator", func(t *testing.T) {
		raw, err := lab.Fetch(t.Context(), "mfg-metrics", "8080", "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		for _, series := range []string{
			fmt.Sprintf(`operator_group_ready{failover_group=%q,mysql_namespace=%q} 1`, g.Name, g.Namespace),
			fmt.Sprintf(`operator_active_site{failover_group=%q,mysql_namespace=%q,site=%q} 1`, g.Name, g.Namespace, group.Status.ActiveSite),
			"operator_site_replication_lag_seconds{", "operator_epoch{",
		} {
			if !strings.Contains(string(raw), series) {
				t.Errorf("no series %s", series)
			}
		}
	})
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/peer/active-site"} {
		t.Run("sidecar "+strings.Trim(path, "/"), func(t *testing.T) { checkSidecar(t, g, path) })
	}
}

func checkSidecar(t *testing.T, g *stage.Group, path string) {
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		url := fmt.Sprintf("http://%s:8090%s", pod.Status.PodIP, path)
		if path == "/peer/active-site" {
			// It answers the other sites alone.
			asker := stage.Sites[(slices.Index(stage.Sites, site)+1)%len(stage.Sites)]
			url += fmt.Sprintf("?namespace=%s&group=%s&site=%s", g.Namespace, g.Name, asker)
		}
		body, err := get(t.Context(), url)
		if err != nil {
			t.Errorf("%s: %v", site, err)
		}
		if path == "/metrics" && !strings.Contains(body, "# TYPE ") {
			t.Errorf("metrics of %s: %q", site, body)
		}
		if path == "/peer/active-site" && !strings.Contains(body, `"statement"`) {
			t.Errorf("%s says %q", site, body)
		}
	}
}

// awaitChange waits for the group to pass a check that is no wholeness.
func awaitChange(t *testing.T, g *stage.Group, what string, check func(*v1alpha1.MysqlFailoverGroup) bool) {
	t.Helper()
	if _, err := g.Await(t.Context(), time.Minute, what, func(group *v1alpha1.MysqlFailoverGroup) error {
		if check(group) {
			return nil
		}
		return errors.New(stage.Describe(group))
	}); err != nil {
		t.Error(err)
	}
}
