// SPDX-License-Identifier: Apache-2.0

package views

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestWhatIsSaidOfASiteThatIsKeptFencedI29: it goes on replicating and serving reads; the active site is told to stay open.
func TestWhatIsSaidOfASiteThatIsKeptFencedI29(t *testing.T) {
	s := factstest.AtRest()
	s.Sites[0].KeptFenced, s.Sites[1].KeptFenced = true, true
	want := map[string]string{"a": "move the role first: kubectl mfg failover GROUP --to SITE", "b": "to end that: kubectl mfg fence off GROUP b", "c": ""}
	for _, v := range Of(s, Decided{Status: s.Status, Healthy: true}) {
		if !strings.HasSuffix(v.KeptFenced, want[v.Name]) || (v.KeptFenced == "") != (want[v.Name] == "") {
			t.Errorf("I29: %s: %q", v.Name, v.KeptFenced)
		}
		if v.Name != "a" && (v.State != v1alpha1.SiteReplica || !v.Readable) {
			t.Errorf("%s is %s, readable %t", v.Name, v.State, v.Readable)
		}
	}
	s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly, s.Sites[0].Sidecar.Report.Writable = true, true, false
	if got := Of(s, Decided{Status: s.Status})[0].KeptFenced; !strings.Contains(got, "never takes over") {
		t.Errorf("I29: the active site is closed, and told to stay open: %q", got)
	}
}
