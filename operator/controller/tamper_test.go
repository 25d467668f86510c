// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// Who may edit ConfigMaps could have mysqld start unfenced (I3). What was changed is put right as soon as it is seen, which is before the
// kubelet hands it to the pod, and told. The key that a site trusts is not there at all.
func TestAChangedConfigMapIsPutRightI3(t *testing.T) {
	for name, change := range map[string]func(*corev1.ConfigMap){
		"another my.cnf": func(c *corev1.ConfigMap) { c.Data[render.ConfigKeyMyCnf] = "[mysqld]\nskip-grant-tables\n" },
		"and no label": func(c *corev1.ConfigMap) {
			c.Labels, c.Data[render.ConfigKeyMyCnf] = nil, "[mysqld]\nskip-grant-tables\n"
		},
		"nothing is there": func(c *corev1.ConfigMap) { c.Data = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			w.reconcile()
			w.settle("a", "b", "c")
			w.facts.Open("a")
			w.reconcile()
			config := &corev1.ConfigMap{}
			w.get(config, v1alpha1.ConfigName(scopetest.Key.Name, "b"))
			conf, labels := config.Data[render.ConfigKeyMyCnf], len(config.Labels)
			if len(config.Data) != 1 || conf == "" {
				t.Errorf("it has %v", config.Data)
			}
			if w.reconcile(); w.said.Count(v1alpha1.ReasonConfigRestored) != 0 {
				t.Error("told although nobody changed it")
			}
			change(config)
			w.must(w.c.Update(w.ctx, config))
			before := w.deployments()["b"]
			w.reconcile()
			config = &corev1.ConfigMap{}
			w.get(config, v1alpha1.ConfigName(scopetest.Key.Name, "b"))
			if config.Data[render.ConfigKeyMyCnf] != conf || len(config.Labels) != labels {
				t.Errorf("I3: the site has %q with %v", config.Data[render.ConfigKeyMyCnf], config.Labels)
			}
			if w.deployments()["b"] != before {
				t.Error("its pod is replaced for it")
			}
			if w.reconcile(); w.said.Count(v1alpha1.ReasonConfigRestored) != 1 {
				t.Errorf("events %v", w.said.List)
			}
		})
	}
}
