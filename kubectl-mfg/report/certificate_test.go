// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestWhatIsWrongWithTheTimeOfACertificate(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := func(days int) *metav1.Time { return new(metav1.NewTime(now.Add(time.Duration(days) * 24 * time.Hour))) }
	for name, tc := range map[string]struct {
		status *v1alpha1.CertificateStatus
		want   string
		bad    bool
		words  string
	}{
		"of the operator": {&v1alpha1.CertificateStatus{NotAfter: at(80), Renewal: at(50), AuthorityNotAfter: at(3000), AuthorityRenewal: at(2000)}, "", false,
			"certificate until 2027-02-13 (80 days left); the operator renews it from 2027-01-14 on"},
		"it is late":          {&v1alpha1.CertificateStatus{NotAfter: at(26), Renewal: at(-4)}, "should have renewed the certificate", false, "26 days left"},
		"it is at work":       {&v1alpha1.CertificateStatus{NotAfter: at(28), Renewal: at(-2)}, "", false, "28 days left"},
		"the authority late":  {&v1alpha1.CertificateStatus{NotAfter: at(80), Renewal: at(50), AuthorityNotAfter: at(700), AuthorityRenewal: at(-4)}, "renewed its authority", false, "80"},
		"of somebody else":    {&v1alpha1.CertificateStatus{NotAfter: at(15)}, "", false, "(15 days left); the operator does not renew it"},
		"it ends soon":        {&v1alpha1.CertificateStatus{NotAfter: at(13)}, "the certificate ends at 2026-12-08", false, "13"},
		"its authority too":   {&v1alpha1.CertificateStatus{NotAfter: at(80), AuthorityNotAfter: at(13)}, "its authority ends at", false, "80"},
		"it has ended":        {&v1alpha1.CertificateStatus{NotAfter: at(0)}, "the certificate ended at", true, "certificate ended at 2026-11-25"},
		"the authority ended": {&v1alpha1.CertificateStatus{NotAfter: at(80), Renewal: at(50), AuthorityNotAfter: at(-1), AuthorityRenewal: at(-2)}, "its authority ended", true, "80"},
	} {
		cr := &v1alpha1.MysqlFailoverGroup{}
		cr.Spec.TLS, cr.Status.TLS = &v1alpha1.TLSSpec{}, &v1alpha1.TLSStatus{Certificate: tc.status}
		c := CertificateOf(cr)
		if got, bad := c.Trouble(now); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || bad != tc.bad {
			t.Errorf("%s: %q, %t", name, got, bad)
		}
		if got := c.Words(now); !strings.Contains(got, tc.words) {
			t.Errorf("%s: %q", name, got)
		}
	}
	// Of one that the operator does not renew it knows when its end is near: a short-lived one is good with few days left.
	for name, tc := range map[string]struct {
		ready  metav1.ConditionStatus
		reason v1alpha1.Reason
		status *v1alpha1.CertificateStatus
		want   string
		bad    bool
	}{
		"a short-lived one":               {metav1.ConditionTrue, v1alpha1.ReasonAsExpected, &v1alpha1.CertificateStatus{NotAfter: at(5)}, "", false},
		"a short-lived authority":         {metav1.ConditionTrue, v1alpha1.ReasonAsExpected, &v1alpha1.CertificateStatus{NotAfter: at(30), AuthorityNotAfter: at(5)}, "", false},
		"it ends soon":                    {metav1.ConditionFalse, v1alpha1.ReasonCertificateNotRenewed, &v1alpha1.CertificateStatus{NotAfter: at(1)}, "the certificate ends at 2026-11-26", false},
		"something else is wrong with it": {metav1.ConditionFalse, v1alpha1.ReasonWrongNames, &v1alpha1.CertificateStatus{NotAfter: at(5)}, "the certificate ends at 2026-11-30", false},
		"nobody looks":                    {metav1.ConditionUnknown, v1alpha1.ReasonAsExpected, &v1alpha1.CertificateStatus{NotAfter: at(5)}, "the certificate ends at 2026-11-30", false},
		"it has ended since":              {metav1.ConditionTrue, v1alpha1.ReasonAsExpected, &v1alpha1.CertificateStatus{NotAfter: at(-1)}, "the certificate ended at", true},
		"the operator is late":            {metav1.ConditionTrue, v1alpha1.ReasonAsExpected, &v1alpha1.CertificateStatus{NotAfter: at(26), Renewal: at(-4)}, "should have renewed", false},
	} {
		cr := &v1alpha1.MysqlFailoverGroup{}
		cr.Spec.TLS, cr.Status.TLS = &v1alpha1.TLSSpec{}, &v1alpha1.TLSStatus{Certificate: tc.status}
		cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionTLSReady, Status: tc.ready, Reason: string(tc.reason)}}
		if got, bad := CertificateOf(cr).Trouble(now); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || bad != tc.bad {
			t.Errorf("%s: %q, %t", name, got, bad)
		}
	}
	for name, cr := range map[string]*v1alpha1.MysqlFailoverGroup{
		"no TLS":                {Status: v1alpha1.MysqlFailoverGroupStatus{TLS: &v1alpha1.TLSStatus{Certificate: &v1alpha1.CertificateStatus{NotAfter: at(1)}}}},
		"no status":             {Spec: v1alpha1.MysqlFailoverGroupSpec{TLS: &v1alpha1.TLSSpec{}}},
		"an operator of before": {Spec: v1alpha1.MysqlFailoverGroupSpec{TLS: &v1alpha1.TLSSpec{}}, Status: v1alpha1.MysqlFailoverGroupStatus{TLS: &v1alpha1.TLSStatus{}}},
		"nothing is known": {Spec: v1alpha1.MysqlFailoverGroupSpec{TLS: &v1alpha1.TLSSpec{}},
			Status: v1alpha1.MysqlFailoverGroupStatus{TLS: &v1alpha1.TLSStatus{Certificate: &v1alpha1.CertificateStatus{}}}},
	} {
		if c := CertificateOf(cr); c != nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
