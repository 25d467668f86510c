// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// A pod that does not come up loses nothing by another one, and may need just that: it waits for no turn, and takes no other pod along. As long as
// nothing is known of the sites it may serve all the same, and waits.
func TestABrokenPodWaitsForNoTurn(t *testing.T) {
	w, _ := pacedWorld(t)
	w.isUnavailable("c")
	before := w.deployments()
	w.newOperator()
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) > 0 {
		t.Fatalf("%v replaced though MySQL of c answers", sites)
	}
	w.facts.Set("c", scope.SiteFacts{})
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) != 1 || sites[0] != "c" {
		t.Fatalf("%v replaced", sites)
	}
	for _, site := range w.group().Status.Upgrade.Sites {
		if site.Behind != (site.Name != "c") {
			t.Errorf("status tells of %s: %+v", site.Name, site)
		}
	}
	if c := w.condition(v1alpha1.ConditionUpgradePending); c.Reason != v1alpha1.ReasonUpgradeWaiting {
		t.Errorf("condition %+v", c)
	}
}
