// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// TestNamed: wherever the operator has words for people, its commands are those for the group at hand, and nothing else changes.
func TestNamed(t *testing.T) {
	const said = "restore it first: kubectl mfg recover-keyring GROUP south; see kubectl mfg keyring verify GROUP"
	const want = "restore it first: kubectl mfg recover-keyring orders -n shop south; see kubectl mfg keyring verify orders -n shop"
	e := &wire.Explanation{
		Message: said, Rules: []wire.ExplainedRule{{Input: said, Remedy: said}}, Loss: &wire.ExplainedLoss{Message: said},
		Candidates: []wire.ExplainedCandidate{{Unfit: said, Because: said, PlannedMessage: said}},
	}
	NameCommands(nil, "shop", "orders")
	NameCommands(e, "shop", "orders")
	live := &wire.GroupStatus{Namespace: "shop", Group: "orders", Message: said, Forecast: &wire.Forecast{Message: said}, Sites: []wire.SiteStatus{{Message: said}}}
	NameLive(live)
	g := &v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"},
		Status: v1alpha1.MysqlFailoverGroupStatus{
			Conditions: []metav1.Condition{{Message: said}}, Sites: []v1alpha1.SiteStatus{{Message: said}},
			LastRequests:    []v1alpha1.LastRequest{{Message: said}},
			PlannedFailover: &v1alpha1.PlannedFailoverStatus{Message: said}, Forecast: &v1alpha1.Forecast{Message: said},
		},
	}
	NameStatus(g)
	for where, tc := range map[string]struct {
		value any
		times int
	}{"explanation": {e, 7}, "live": {live, 3}, "status": {g, 5}} {
		raw, err := json.Marshal(tc.value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "GROUP") || strings.Count(string(raw), want) != tc.times {
			t.Errorf("%s: %s", where, raw)
		}
	}
	const other = "Error 1055: nonaggregated column, not in GROUP BY; kubectl mfg explain orders GROUPS"
	kept := other
	if named(&kept, "shop", "orders"); kept != other {
		t.Errorf("%q", kept)
	}
}
