// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// TestNoOrderOverridesWhatAPersonKeepsFencedI29: neither the rules of an emergency, nor an order that accepts loss, nor a planned failover.
func TestNoOrderOverridesWhatAPersonKeepsFencedI29(t *testing.T) {
	for _, kept := range []bool{false, true} {
		s := factstest.AtRest()
		s.Group = facts.Group{Namespace: "shop", Name: "orders"}
		s.Sites[1].KeptFenced, s.Policy.ForceTo = kept, "b"
		if got := UnfitOf(s, facts.Memory{}, s.Sites[1]).By == GuardKeptFenced; got != kept {
			t.Errorf("I29: kept %t: an emergency failover is refused: %t", kept, got)
		}
		if to := WithOrder(s).Order.To; Forcible(s, s.Sites[1]) == kept || (to == "b") == kept {
			t.Errorf("I29: kept %t: a person may order it: %t, %q", kept, Forcible(s, s.Sites[1]), to)
		}
		no := Preflight(s, facts.Memory{}, s.Sites[0], "b")
		if (no.Reason == v1alpha1.ReasonKeptFenced) != kept || Passing(no.Reason) {
			t.Errorf("I29: kept %t: a planned failover: %+v", kept, no)
		}
		if kept && (len(no.Remedies) != 1 || no.Remedies[0].Command != "kubectl mfg fence off orders b -n shop" || !strings.Contains(no.Message, no.Remedies[0].Command)) {
			t.Errorf("I29: what to do about it: %+v", no)
		}
	}
}

// TestWhoseFenceIsToBeEnded: of the site that would take over then; a site that is down too would not.
func TestWhoseFenceIsToBeEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*facts.Snapshot)
		want   string
	}{
		"nobody is kept fenced":  {func(*facts.Snapshot) {}, ""},
		"b is":                   {func(s *facts.Snapshot) { s.Sites[1].KeptFenced = true }, "b"},
		"b is, and is down":      {func(s *facts.Snapshot) { s.Sites[1].KeptFenced = true; factstest.Silence(&s.Sites[1]) }, ""},
		"b is, and lacks rows":   {func(s *facts.Snapshot) { s.Sites[1].KeptFenced, s.Status.RowsOutside = true, 2 }, ""},
		"the active site itself": {func(s *facts.Snapshot) { s.Sites[0].KeptFenced = true }, ""},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s)
		got, found := endable(s, facts.Memory{})
		if got != tc.want || found != (tc.want != "") {
			t.Errorf("%s: %q", name, got)
		}
		advised := Ask(s, facts.Memory{}, Candidate{}, false).remediesWithoutCandidate()
		if is := advised[0].Command == remedy.EndFence(s.Group, "b"); is != (tc.want == "b") {
			t.Errorf("%s: %+v", name, advised)
		}
	}
}
