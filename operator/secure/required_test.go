// SPDX-License-Identifier: Apache-2.0

package secure_test

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/secure"
)

// TestRequiredIsSaidOnceItIsSo: the step is made before the sites are updated, so it proves nothing of them.
func TestRequiredIsSaidOnceItIsSo(t *testing.T) {
	for _, tc := range []struct {
		why    string
		from   v1alpha1.TLSPhase
		change func(*secure.Group)
		site   string
	}{
		{"every site refuses", required, nil, ""},
		{"the step alone", clients, func(g *secure.Group) { g.Sites[0].Refuses = false }, "a"},
		{"one site is not updated yet", required, func(g *secure.Group) { g.Sites[2].Refuses, g.Sites[2].Accepts = false, true }, "c"},
		{"one site is away before it was seen to refuse", required, func(g *secure.Group) { g.Sites[1].Refuses = false }, "b"},
		{"a pod of a site accepts, whatever else is said of it", required, func(g *secure.Group) { g.Sites[1].Accepts = true }, "b"},
		{"a site is away that refused", required, func(g *secure.Group) { g.Refused, g.Sites[1].Refuses = true, false }, ""},
		{"a site comes back that accepts", required, func(g *secure.Group) { g.Refused, g.Sites[1].Refuses, g.Sites[1].Accepts = true, false, true }, "b"},
	} {
		g := at(tc.from)
		if tc.change != nil {
			tc.change(&g)
		}
		d := secure.Decide(g)
		wantReason := v1alpha1.ReasonTLSUpdatingSites
		if tc.site == "" {
			wantReason = v1alpha1.ReasonAsExpected
		}
		if d.Phase != required || d.Refused != (tc.site == "") || d.Site != tc.site || d.Reason != wantReason {
			t.Errorf("%s: %+v", tc.why, d)
		}
		if tc.site != "" && !strings.Contains(d.Message, "until "+tc.site+" does so") {
			t.Errorf("%s: message %q", tc.why, d.Message)
		}
	}
}

// TestNoOtherPhaseIsRefused, whatever the sites do.
func TestNoOtherPhaseIsRefused(t *testing.T) {
	for _, phase := range []v1alpha1.TLSPhase{plain, certificates, channels, clients} {
		g := at(phase)
		g.Refused, g.Usable, g.PlainConnections = true, false, v1alpha1.PlainAllow
		if d := secure.Decide(g); d.Refused || d.Phase != phase {
			t.Errorf("%s: %+v", phase, d)
		}
	}
}
