// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// Who may edit ConfigMaps could have a site trust another key, and sign its own statements (I1, I2), or have mysqld start unfenced.
// What was changed is put right as soon as it is seen, which is before the kubelet hands it to the pod.
func TestAChangedConfigMapIsPutRight(t *testing.T) {
	for name, change := range map[string]func(*corev1.ConfigMap){
		"another key":    func(c *corev1.ConfigMap) { c.Data[render.ConfigKeyAuthority] = "of a stranger" },
		"another my.cnf": func(c *corev1.ConfigMap) { c.Data[render.ConfigKeyMyCnf] = "[mysqld]\nskip-grant-tables\n" },
		"and no label":   func(c *corev1.ConfigMap) { c.Labels, c.Data[render.ConfigKeyAuthority] = nil, "of a stranger" },
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			w.reconcile()
			w.settle("a", "b", "c")
			w.facts.open("a")
			w.reconcile()
			config := &corev1.ConfigMap{}
			w.get(config, v1alpha1.ConfigName(testKey.Name, "b"))
			key, conf, labels := config.Data[render.ConfigKeyAuthority], config.Data[render.ConfigKeyMyCnf], len(config.Labels)
			change(config)
			w.must(w.c.Update(w.ctx, config))
			before := w.deployments()["b"]
			w.reconcile()
			config = &corev1.ConfigMap{}
			w.get(config, v1alpha1.ConfigName(testKey.Name, "b"))
			if config.Data[render.ConfigKeyAuthority] != key || !strings.Contains(key, "PUBLIC KEY") {
				t.Errorf("the site trusts %q", config.Data[render.ConfigKeyAuthority])
			}
			if config.Data[render.ConfigKeyMyCnf] != conf || len(config.Labels) != labels {
				t.Errorf("the site has %q with %v", config.Data[render.ConfigKeyMyCnf], config.Labels)
			}
			if w.deployments()["b"] != before {
				t.Error("its pod is replaced for it")
			}
		})
	}
}
