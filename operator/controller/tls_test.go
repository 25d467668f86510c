// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// TestWhatASiteShowsCounts: what is in the Secret says nothing about what mysqld shows.
func TestWhatASiteShowsCounts(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	valid := func(since, left time.Duration) wire.CertificateReport {
		from, to := now.Add(-since), now.Add(left)
		return wire.CertificateReport{NotBefore: &from, NotAfter: &to}
	}
	refused := valid(60*day, 30*day)
	refused.Problem = "it keeps the former one"
	for name, tc := range map[string]struct {
		shown wire.CertificateReport
		want  string
	}{
		"all is well":                       {valid(60*day, 30*day), ""},
		"cert-manager has still to begin":   {valid(59*day, 31*day), ""},
		"a short-lived one":                 {valid(16*time.Hour, 8*time.Hour), ""},
		"a short-lived one, not renewed":    {valid(21*time.Hour, 3*time.Hour), "b shows a certificate that expires at 2026-11-20T15:00:00Z"},
		"not renewed":                       {valid(77*day, 13*day), "b shows a certificate that expires at 2026-12-03T12:00:00Z"},
		"of ten years":                      {valid(3630*day, 20*day), ""},
		"ended":                             {valid(91*day, -day), "b shows a certificate that expires"},
		"refused":                           {refused, "MySQL of b does not take the certificate: it keeps the former one"},
		"MySQL has not answered as to that": {wire.CertificateReport{}, ""},
	} {
		s := &scope.Scope{Group: scopetest.Group(withTLS), Now: now, Facts: scope.GroupFacts{Sites: map[string]scope.SiteFacts{"b": {Certificate: &tc.shown}}}}
		got := shownTrouble(s)
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || (got != "" && !strings.Contains(got, "Secret orders-tls")) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := shownTrouble(&scope.Scope{Group: &v1alpha1.MysqlFailoverGroup{}, Now: now}); got != "" {
		t.Errorf("nothing known: %q", got)
	}
}
