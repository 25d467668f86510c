// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestTheTimeOfTheCertificate(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		days int // until it ends; 0 is nothing known
		// server is how far the API server's clock is ahead of this machine's; serverErr that it was not read.
		server    time.Duration
		serverErr error
		level     Level
		says      string
	}{
		"well":                       {80, 0, nil, OK, "80 days left"},
		"soon":                       {13, 0, nil, Warn, "ends at 2026-12-08"},
		"ended":                      {-1, 0, nil, Fail, "clients that verify it cannot connect"},
		"nothing is known":           {0, 0, nil, Unknown, "earlier version"},
		"this machine's is behind":   {80, 90 * 24 * time.Hour, nil, Fail, "ended"},
		"the other one was not read": {80, 90 * 24 * time.Hour, errors.New("no"), OK, "80 days left"},
	} {
		g := &v1alpha1.MysqlFailoverGroup{}
		g.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "x"}
		if tc.days != 0 {
			at := metav1.NewTime(now.Add(time.Duration(tc.days) * 24 * time.Hour))
			g.Status.TLS = &v1alpha1.TLSStatus{Certificate: &v1alpha1.CertificateStatus{NotAfter: &at}}
		}
		got := groupCertificate(t.Context(), World{Group: g, Now: now, ServerTime: now.Add(tc.server), ServerErr: tc.serverErr})
		if len(got) != 1 || got[0].Level != tc.level || !strings.Contains(got[0].Message, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := groupCertificate(t.Context(), World{Group: &v1alpha1.MysqlFailoverGroup{}}); got != nil {
		t.Errorf("a group without TLS: %+v", got)
	}
}
