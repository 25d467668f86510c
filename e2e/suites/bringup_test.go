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

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// TestBringUp makes a group from nothing and looks at all that has to be there. Its subtests share the group.
func TestBringUp(t *testing.T) {
	old := &stage.Group{Stage: lab, Namespace: namespace, Name: name}
	if err := old.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, group := whole(t)
	t.Run("conditions", func(t *testing.T) { checkConditions(t, group) })
	t.Run("labels and Services", func(t *testing.T) { checkServices(t, g, group) })
	t.Run("disruption budget", func(t *testing.T) { checkBudget(t, g) })
	t.Run("replication", func(t *testing.T) { checkReplication(t, g, group) })
	t.Run("clone", func(t *testing.T) { checkClone(t, g, group) })
	t.Run("rows replicate", func(t *testing.T) { checkRows(t, g, group) })
	t.Run("clients need TLS", func(t *testing.T) { checkTLS(t, g, group) })
	t.Run("pods have no credentials", func(t *testing.T) { checkPods(t, g) })
	t.Run("columns", func(t *testing.T) { checkColumns(t, g, group) })
}

func checkConditions(t *testing.T, group *v1alpha1.MysqlFailoverGroup) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionReplicationHealthy} {
		if !meta.IsStatusConditionTrue(group.Status.Conditions, kind) {
			t.Errorf("condition %s is not true: %+v", kind, meta.FindStatusCondition(group.Status.Conditions, kind))
		}
	}
	for _, kind := range []string{v1alpha1.ConditionDegraded, v1alpha1.ConditionFailoverBlocked} {
		if meta.IsStatusConditionTrue(group.Status.Conditions, kind) {
			t.Errorf("condition %s is true: %+v", kind, meta.FindStatusCondition(group.Status.Conditions, kind))
		}
	}
	if group.Status.ActiveSite != "east" {
		t.Errorf("active site = %s, east has the highest priority", group.Status.ActiveSite)
	}
	if group.Status.Epoch != 1 {
		t.Errorf("epoch = %d, the first active site has epoch 1", group.Status.Epoch)
	}
	for _, site := range group.Status.Sites {
		if !site.Provisioned {
			t.Errorf("site %s is not provisioned", site.Name)
		}
	}
}

func replicas(group *v1alpha1.MysqlFailoverGroup) []string {
	var names []string
	for _, site := range group.Spec.Sites {
		if site.Name != group.Status.ActiveSite {
			names = append(names, site.Name)
		}
	}
	return names
}

func checkServices(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) {
	ips := map[string]string{}
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		ips[site] = pod.Status.PodIP
		role := v1alpha1.RoleReplica
		if site == group.Status.ActiveSite {
			role = v1alpha1.RolePrimary
		}
		if got := pod.Labels[v1alpha1.LabelRole]; got != role {
			t.Errorf("pod of %s has role %q, want %q", site, got, role)
		}
		if got := pod.Labels[v1alpha1.LabelHealthy]; got != v1alpha1.HealthyYes {
			t.Errorf("pod of %s is labelled healthy=%q", site, got)
		}
		if pod.Spec.NodeName != site {
			t.Errorf("pod of %s runs on %s", site, pod.Spec.NodeName)
		}
	}
	want := map[string][]string{v1alpha1.PrimaryService(g.Name): {ips[group.Status.ActiveSite]}}
	for _, site := range replicas(group) {
		want[v1alpha1.ReplicasService(g.Name)] = append(want[v1alpha1.ReplicasService(g.Name)], ips[site])
	}
	for site, ip := range ips {
		want[v1alpha1.SiteName(g.Name, site)] = []string{ip}
	}
	for service, addresses := range want {
		slices.Sort(addresses)
		// Endpoints follow labels within a moment.
		if err := stage.Poll(t.Context(), time.Minute, "endpoints of "+service, func(ctx context.Context) error {
			got, err := endpoints(ctx, g, service)
			if err == nil && !slices.Equal(got, addresses) {
				err = fmt.Errorf("they are %v, want %v", got, addresses)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

func endpoints(ctx context.Context, g *stage.Group, service string) ([]string, error) {
	var slicesOf discoveryv1.EndpointSliceList
	if err := g.Kube.List(ctx, &slicesOf, client.InNamespace(g.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return nil, err
	}
	var all []string
	for _, s := range slicesOf.Items {
		for _, e := range s.Endpoints {
			all = append(all, e.Addresses...)
		}
	}
	slices.Sort(all)
	return all, nil
}

// checkBudget: every pod is under one budget. The active site's and that of the only candidate must not be evicted; of the
// others one at a time may be.
func checkBudget(t *testing.T, g *stage.Group) {
	for name, want := range map[string]struct {
		maxUnavailable string
		healthy        int32
	}{v1alpha1.DisruptionBudgetName(g.Name): {"1", 1}, v1alpha1.ProtectionName(g.Name): {"0", 2}} {
		pdb := &policyv1.PodDisruptionBudget{}
		err := stage.Poll(t.Context(), time.Minute, "budget "+name+" to see its pods", func(ctx context.Context) error {
			if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, pdb); err != nil {
				return err
			}
			// Kubernetes counts a budget again when a pod under it changes, not when one is labelled out of it: what it counts
			// may be one too many for a while.
			if pdb.Status.CurrentHealthy < want.healthy {
				return fmt.Errorf("it counts %d healthy pods, want %d", pdb.Status.CurrentHealthy, want.healthy)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if pdb.Spec.MaxUnavailable == nil || pdb.Spec.MaxUnavailable.String() != want.maxUnavailable {
			t.Errorf("%s: maxUnavailable = %v, want %s", name, pdb.Spec.MaxUnavailable, want.maxUnavailable)
		}
		if p := pdb.Spec.UnhealthyPodEvictionPolicy; p == nil || *p != policyv1.AlwaysAllow {
			t.Errorf("%s: unhealthyPodEvictionPolicy = %v", name, p)
		}
	}
}

func checkReplication(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) {
	active := group.Status.ActiveSite
	if got := query(t, g, active, "SELECT @@read_only, @@super_read_only, @@offline_mode"); got != "0\t0\t0" {
		t.Errorf("active site: read_only, super_read_only, offline_mode = %s", got)
	}
	if got := query(t, g, active, "SELECT COUNT(*) FROM performance_schema.replication_connection_configuration"); got != "0" {
		t.Errorf("the active site has %s replication channels", got)
	}
	source := v1alpha1.SiteName(g.Name, active) + "."
	for _, site := range replicas(group) {
		if got := query(t, g, site, "SELECT @@read_only, @@super_read_only, @@offline_mode"); got != "1\t1\t0" {
			t.Errorf("%s: read_only, super_read_only, offline_mode = %s", site, got)
		}
		got := query(t, g, site, "SELECT c.HOST, c.SSL_ALLOWED, c.AUTO_POSITION, s.SERVICE_STATE "+
			"FROM performance_schema.replication_connection_configuration c JOIN performance_schema.replication_connection_status s USING (CHANNEL_NAME)")
		if !strings.HasPrefix(got, source) || !strings.HasSuffix(got, "\tYES\t1\tON") {
			t.Errorf("%s follows %q, want %s… over TLS by GTID", site, got, source)
		}
	}
}

func checkClone(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) {
	uuids := map[string]string{}
	for _, site := range stage.Sites {
		uuid := query(t, g, site, "SELECT @@server_uuid")
		if other, taken := uuids[uuid]; taken {
			t.Errorf("%s and %s have the same server_uuid", site, other)
		}
		uuids[uuid] = site
	}
	for _, site := range replicas(group) {
		if got := query(t, g, site, "SELECT STATE, ERROR_NO FROM performance_schema.clone_status"); got != "Completed\t0" {
			t.Errorf("clone of %s: %q", site, got)
		}
	}
	// The operator's own accounts were made alike on every site and must not count as transactions.
	purged := query(t, g, group.Status.ActiveSite, "SELECT @@gtid_purged")
	if purged != "" {
		t.Errorf("the active site has purged %q: a replica could not start from the beginning", purged)
	}
}

func checkRows(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) {
	if err := g.EnsureApp(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, g, "REPLACE INTO app.writes (writer, worker, seq, site) VALUES ('bringup', 0, 1, 'x')")
	for _, site := range replicas(group) {
		if err := stage.Poll(t.Context(), time.Minute, "the row on "+site, func(ctx context.Context) error {
			out, err := g.RootSQL(ctx, site, "SELECT COUNT(*) FROM app.writes WHERE writer = 'bringup'")
			if err == nil && strings.TrimSpace(out) != "1" {
				err = errors.New("it is not there")
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

func checkTLS(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) {
	for _, site := range stage.Sites {
		if got := query(t, g, site, "SELECT @@require_secure_transport"); got != "1" {
			t.Errorf("%s takes connections in plain text", site)
		}
	}
	db, err := g.Dial(t.Context(), group.Status.ActiveSite)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var name, cipher string
	if err := db.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil || cipher == "" {
		t.Errorf("cipher = %q, %v", cipher, err)
	}
}

func checkPods(t *testing.T, g *stage.Group) {
	pods, err := g.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if p.Spec.AutomountServiceAccountToken == nil || *p.Spec.AutomountServiceAccountToken {
			t.Errorf("pod %s mounts a service account token", p.Name)
		}
		for _, v := range p.Spec.Volumes {
			if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
				t.Errorf("pod %s mounts a service account token as volume %s", p.Name, v.Name)
			}
		}
	}
}

func checkColumns(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) {
	out, err := g.Lab.Kubectl(t.Context(), "-n", g.Namespace, "get", "mfg", g.Name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("kubectl get mfg:\n%s", out)
	}
	for _, column := range []string{"NAME", "READY", "ACTIVE", "SITES", "LAG", "SEALED", "FAILOVER", "AGE"} {
		if !strings.Contains(lines[0], column) {
			t.Errorf("no column %s in %q", column, lines[0])
		}
	}
	for _, value := range []string{g.Name, "True", group.Status.ActiveSite, "3/3"} {
		if !slices.Contains(strings.Fields(lines[1]), value) {
			t.Errorf("%q is not in %q", value, lines[1])
		}
	}
}
