// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// dnsName is the name that follows the active site in this file; addressOf is where it leads to.
const dnsName = "orders.mfg.example.org"

func addressOf(site string) string { return site + ".mfg.example.org" }

// steered is the shared group with a DNS name and node taints, in a cluster that knows external-dns' kind. All of it is
// taken back when the test ends.
func steered(t *testing.T) (*stage.Group, *v1alpha1.MysqlFailoverGroup) {
	t.Helper()
	g, group := whole(t)
	crd := filepath.Join(lab.Repo, "operator", "controller", "testdata", "dnsendpoints.yaml")
	kubectl := func(ctx context.Context, args ...string) {
		t.Helper()
		if out, err := lab.Lab.Kubectl(ctx, args...); err != nil {
			t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() {
		ctx := context.Background()
		unsteer(ctx, t, g)
		kubectl(ctx, "delete", "--ignore-not-found", "-f", crd)
		if err := lab.InstallOperator(ctx); err != nil {
			t.Errorf("install the operator as it was: %v", err)
		}
	})
	kubectl(t.Context(), "apply", "-f", crd)
	kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=30s", "-f", crd)
	allowTaints(t)

	before := group.DeepCopy()
	group.Spec.DNS = &v1alpha1.DNSSpec{Name: dnsName, TTLSeconds: 5}
	group.Spec.Taints = &v1alpha1.TaintsSpec{Enabled: true}
	for i := range group.Spec.Sites {
		group.Spec.Sites[i].ExternalAddress = addressOf(group.Spec.Sites[i].Name)
	}
	if err := g.Kube.Patch(t.Context(), group, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	awaitSteered(t, g, group.Status.ActiveSite)
	return g, group
}

// allowTaints upgrades the operator so that it may change nodes. Its pod stays: nothing in it depends on that.
func allowTaints(t *testing.T) {
	t.Helper()
	values, err := lab.OperatorValues()
	if err != nil {
		t.Fatal(err)
	}
	values["nodeTaints"] = map[string]any{"enabled": true}
	if _, err := lab.Helm(t.Context(), values, "upgrade", "--install", stage.OperatorRelease, lab.Chart("mfg"),
		"--namespace", stage.OperatorNamespace, "--timeout", "2m"); err != nil {
		t.Fatal(err)
	}
}

// unsteer turns both features off, which must leave nothing behind.
func unsteer(ctx context.Context, t *testing.T, g *stage.Group) {
	t.Helper()
	group, err := g.Get(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	before := group.DeepCopy()
	group.Spec.DNS, group.Spec.Taints = nil, nil
	for i := range group.Spec.Sites {
		group.Spec.Sites[i].ExternalAddress = ""
	}
	if err := g.Kube.Patch(ctx, group, client.MergeFrom(before)); err != nil {
		t.Error(err)
		return
	}
	if err := stage.Poll(ctx, time.Minute, "the record and the taints to go", func(ctx context.Context) error {
		tainted, err := taintedSites(ctx, g)
		if err != nil {
			return err
		}
		target, err := recordTarget(ctx, g)
		if err == nil || len(tainted) > 0 {
			return fmt.Errorf("the record leads to %q, tainted are the nodes of %v", target, tainted)
		}
		return client.IgnoreNotFound(err)
	}); err != nil {
		t.Error(err)
	}
}

// recordTarget is where the group's DNSEndpoint leads to.
func recordTarget(ctx context.Context, g *stage.Group) (string, error) {
	endpoint := &unstructured.Unstructured{}
	endpoint.SetAPIVersion("externaldns.k8s.io/v1alpha1")
	endpoint.SetKind("DNSEndpoint")
	key := client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.DNSEndpointName(g.Name)}
	if err := g.Kube.Get(ctx, key, endpoint); err != nil {
		return "", err
	}
	list, _, _ := unstructured.NestedSlice(endpoint.Object, "spec", "endpoints")
	if len(list) != 1 {
		return "", fmt.Errorf("endpoints %v", list)
	}
	fields, ok := list[0].(map[string]any)
	if !ok || fields["dnsName"] != dnsName || fields["recordType"] != "CNAME" || fields["recordTTL"] != int64(5) {
		return "", fmt.Errorf("endpoint %v", list[0])
	}
	targets, _, _ := unstructured.NestedStringSlice(fields, "targets")
	return strings.Join(targets, ","), nil
}

// taintedSites are the values of the group's taints on all nodes. A taint on the node of another site is an error.
func taintedSites(ctx context.Context, g *stage.Group) ([]string, error) {
	group, err := g.Get(ctx)
	if err != nil {
		return nil, err
	}
	home := map[string]string{}
	for _, site := range group.Status.Sites {
		home[site.Name] = site.Node
	}
	var nodes corev1.NodeList
	if err := g.Kube.List(ctx, &nodes); err != nil {
		return nil, err
	}
	var out []string
	for _, node := range nodes.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key != v1alpha1.InactiveSiteTaint(g.Namespace, g.Name) {
				continue
			}
			if home[taint.Value] != node.Name || string(taint.Effect) != v1alpha1.InactiveSiteEffect {
				return nil, fmt.Errorf("node %s carries %s", node.Name, taint.ToString())
			}
			out = append(out, taint.Value)
		}
	}
	slices.Sort(out)
	return out, nil
}

// steeredTo says what does not follow a site yet.
func steeredTo(ctx context.Context, g *stage.Group, active string) error {
	target, err := recordTarget(ctx, g)
	if err != nil {
		return err
	}
	tainted, err := taintedSites(ctx, g)
	if err != nil {
		return err
	}
	var want []string
	for _, site := range stage.Sites {
		if site != active {
			want = append(want, site)
		}
	}
	slices.Sort(want)
	if target != addressOf(active) || !slices.Equal(tainted, want) {
		return fmt.Errorf("%s is active, the record leads to %s, tainted are the nodes of %v", active, target, tainted)
	}
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []string{v1alpha1.ConditionDNSReady, v1alpha1.ConditionTaintsReady} {
		if c := meta.FindStatusCondition(group.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %s: %+v", kind, c)
		}
	}
	return nil
}

func awaitSteered(t *testing.T, g *stage.Group, active string) {
	t.Helper()
	if err := stage.Poll(t.Context(), time.Minute, "record and taints to follow "+active, func(ctx context.Context) error {
		return steeredTo(ctx, g, active)
	}); err != nil {
		t.Fatal(err)
	}
}

// The record and the taints follow a planned failover there and back, and never the other way round: while the role
// moves they stay where they are.
func TestRecordAndTaintsFollowTheActiveSite(t *testing.T) {
	g, _ := steered(t)
	for range 2 {
		to := moveRole(t, g)
		open := time.Now()
		awaitSteered(t, g, to)
		t.Logf("record and taints follow %s, at most %s after it was shown open", to, time.Since(open).Round(100*time.Millisecond))
		if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
			t.Fatal(err)
		}
	}
}

// An API that refuses the record delays no failover: the role moves, the condition tells, and the record follows once
// the API is well again.
func TestRefusedRecordDelaysNoFailover(t *testing.T) {
	g, group := steered(t)
	webhook := refuseRecords(t, g)
	old := group.Status.ActiveSite
	to := moveRole(t, g)
	if _, err := g.Await(t.Context(), time.Minute, "the failed write to be told", func(group *v1alpha1.MysqlFailoverGroup) error {
		if c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionDNSReady); c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := recordTarget(t.Context(), g); err != nil || got != addressOf(old) {
		t.Errorf("the refused record leads to %s (%v)", got, err)
	}
	if err := g.Kube.Delete(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	awaitSteered(t, g, to)
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
}

// refuseRecords has the API server ask somebody about every DNSEndpoint of the namespace who is not there.
func refuseRecords(t *testing.T, g *stage.Group) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	url := "https://127.0.0.1:9/"
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "mfg-suite-refuse-records"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "refuse.records.mfg.example.org", AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(admissionv1.SideEffectClassNone), FailurePolicy: new(admissionv1.Fail), TimeoutSeconds: new(int32(2)),
			ClientConfig:      admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": g.Namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"externaldns.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"dnsendpoints"}},
			}},
		}},
	}
	if err := g.Kube.Create(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(g.Kube.Delete(context.Background(), webhook)); err != nil {
			t.Errorf("delete the webhook: %v", err)
		}
	})
	return webhook
}
