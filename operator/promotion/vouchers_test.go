// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// TestWhatIsSaidOfASilentVoucherI4: of one that has just lost an answer, that it is about to be known; of one that is silent for long, what a
// person can do. In both cases no failover is begun that could not be ended.
func TestWhatIsSaidOfASilentVoucherI4(t *testing.T) {
	long := &facts.SiteMemory{SilentPolls: 3, DownSince: factstest.Start.Add(-time.Minute)}
	for name, tc := range map[string]struct {
		voucher *facts.SiteMemory
		answers bool
		reason  facts.Reason
		message string
		advice  string
	}{
		"it answers":            {&facts.SiteMemory{}, true, "", "", ""},
		"it lost an answer too": {&facts.SiteMemory{SilentPolls: 1, DownSince: factstest.Start}, false, v1alpha1.ReasonBelowThreshold, "c has lost an answer too: whether it could vouch for a is about to be known", remedy.WaitForMore.Text},
		"it is silent for long": {long, false, v1alpha1.ReasonSiteMayStillVouch, "a may still be open, and c, which does not answer either, may vouch for it: a failover could not be ended", "bring either back"},
	} {
		s := factstest.HealthyThree()
		factstest.Silence(&s.Sites[0])
		if !tc.answers {
			factstest.Silence(&s.Sites[2])
		}
		m := facts.Memory{Sites: map[string]*facts.SiteMemory{"a": long, "c": tc.voucher}}
		a := Ask(s, m, Candidate{Site: s.Sites[1]}, true).vouchers()
		if a.Reason != tc.reason || !strings.HasPrefix(a.Message, tc.message) || (a.Message == "") != (tc.message == "") {
			t.Errorf("I4: %s: %s %q", name, a.Reason, a.Message)
		}
		if r := Endings[0].Explain(Ask(s, m, Candidate{Site: s.Sites[1]}, true)); tc.advice != "" && !strings.Contains(r.Remedies[0].Text, tc.advice) {
			t.Errorf("I4: %s: %+v", name, r.Remedies)
		}
	}
}

// TestWhatCuresASiteIsForEveryReason: also for one that no guard of this version gives.
func TestWhatCuresASiteIsForEveryReason(t *testing.T) {
	g := facts.Group{Namespace: "shop", Name: "orders"}
	if got, want := (Unfit{By: "somebody"}).Cure(g, "b"), remedy.TheSite(g, "b"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
