// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
)

// TestEventsOfNeighbours: a group whose name goes on where that of a site ends has events of its own.
func TestEventsOfNeighbours(t *testing.T) {
	group := func(name string, sites ...string) v1alpha1.MysqlFailoverGroup {
		g := v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, s := range sites {
			g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: s})
		}
		return g
	}
	all := []v1alpha1.MysqlFailoverGroup{group("orders", "eu", "us"), group("orders-eu", "paris")}
	all[0].Spec.Cache = &v1alpha1.CacheSpec{} // off by now
	whose := map[string]string{
		"orders-cache-eu-0": "orders", "orders-cache-us": "orders", "orders-cache-paris-0": "", "orders-eu-cache-paris-0": "",
		"mysql-orders-eu-7d9f-x2x": "orders", "mysql-orders-eu": "orders", "mysql-orders-us-data": "orders",
		"mysql-orders-eu-paris-7d9f-x2x": "orders-eu", "mysql-orders-eu-paris": "orders-eu", "mysql-orders2-us": "",
	}
	for i := range all {
		op := &inspect.Events{Group: all[i].Name}
		ours := op.Belongs(&all[i], all)
		for name, group := range whose {
			if got := ours(corev1.ObjectReference{Kind: "Pod", Name: name}); got != (group == op.Group) {
				t.Errorf("%s belongs to %s: %t", name, op.Group, got)
			}
		}
	}
}

// TestNoEvents: what was not found is what was looked for.
func TestNoEvents(t *testing.T) {
	for args, want := range map[string]string{
		"":                       "No events are kept.\n",
		"--since 90s":            "No events in the last 90s.\n",
		"--since 10m --warnings": "No warnings in the last 10m.\n",
		"--warnings":             "No warnings are kept.\n",
	} {
		f := loadHealthy(t)
		f.objects = map[string]any{"/api/v1/namespaces/shop/events": corev1.EventList{}}
		if got := run(t, f, runOptions{}, append(strings.Fields("events orders -n shop"), strings.Fields(args)...)...); got.code != cli.ExitHealthy || got.errOut != want {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
