// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestHowFarTLSIs(t *testing.T) {
	group := func(status metav1.ConditionStatus, tls *v1alpha1.TLSStatus) *v1alpha1.MysqlFailoverGroup {
		g := &v1alpha1.MysqlFailoverGroup{}
		g.Status.TLS = tls
		if status != "" {
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionTLSRequired, Status: status, Message: "Clients: they may"}}
		}
		return g
	}
	for name, tc := range map[string]struct {
		group *v1alpha1.MysqlFailoverGroup
		want  string
	}{
		"nothing is under way": {group("", nil), ""},
		"it is there":          {group(metav1.ConditionTrue, nil), ""},
		"it waits":             {group(metav1.ConditionFalse, nil), "TLS is not required yet; Clients: they may"},
		"clients were counted": {group(metav1.ConditionFalse, &v1alpha1.TLSStatus{Sites: []v1alpha1.SiteTLSStatus{{Name: "paris", PlainConnections: 3}, {Name: "frankfurt"}}}),
			"TLS is not required yet; Clients: they may; clients without TLS: paris 3, frankfurt 0"},
	} {
		if got := tlsNote(tc.group); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		notes := notesOf(tc.group, MysqlFailoverGroupReport{}, time.Time{})
		if told := len(notes) == 1 && notes[0].Text == tc.want; told != (tc.want != "") {
			t.Errorf("%s: notes %v", name, notes)
		}
	}
}
