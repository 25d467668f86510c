// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const crd = "mysqlfailovergroups.mysql-mfg.io"

// install runs the operator's chart with more values and waits for the operator.
func install(t *testing.T, more map[string]any) string {
	t.Helper()
	values, err := lab.OperatorValues()
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(values, more)
	out, err := lab.Helm(t.Context(), values, "upgrade", "--install", stage.OperatorRelease, lab.Chart("mfg"),
		"--namespace", stage.OperatorNamespace, "--timeout", "2m")
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.AwaitOperator(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	return out
}

// comesAndGoes upgrades the operator's chart and removes it while a group lives under load.
// The definition and the group stay, and the group goes on without an operator.
func comesAndGoes(t *testing.T, g *stage.Group, w *stage.Witnesses) {
	t.Helper()
	install(t, map[string]any{"logging": map[string]any{"level": "debug"}})
	if _, err := lab.Lab.Helm(t.Context(), "uninstall", stage.OperatorRelease, "--namespace", stage.OperatorNamespace, "--wait", "--timeout", "2m"); err != nil {
		t.Fatal(err)
	}

	if _, err := lab.Lab.Kubectl(t.Context(), "get", "crd", crd); err != nil {
		t.Errorf("the definition is gone: %v", err)
	}
	if _, err := g.Get(t.Context()); err != nil {
		t.Errorf("the group is gone: %v", err)
	}
	sleep(t, lease+5*time.Second)
	if err := w.Service.AwaitCommit(t.Context(), 30*time.Second); err != nil {
		t.Errorf("the group does not serve without its operator: %v", err)
	}
}

// uids are the group's objects of one kind by name.
func uids(t *testing.T, g *stage.Group, list client.ObjectList) map[string]string {
	t.Helper()
	if err := g.Kube.List(t.Context(), list, client.InNamespace(g.Namespace)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	switch l := list.(type) {
	case *corev1.PersistentVolumeClaimList:
		for _, o := range l.Items {
			all[o.Name] = string(o.UID)
		}
	case *corev1.SecretList:
		for _, o := range l.Items {
			all[o.Name] = string(o.UID)
		}
	}
	return all
}
