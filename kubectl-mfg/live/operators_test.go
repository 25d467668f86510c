// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestOperators: the pod that leads comes first while its node reports, and one that a lost node keeps "running" comes last.
func TestOperators(t *testing.T) {
	pod := func(name string, leads, ready bool) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		if leads {
			p.Labels = map[string]string{v1alpha1.LabelLeader: v1alpha1.Leads}
		}
		if ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return p
	}
	pending := pod("pending", true, true)
	pending.Status.Phase = corev1.PodPending
	for _, tc := range []struct {
		pods []corev1.Pod
		want string
	}{
		{[]corev1.Pod{pod("a", false, true), pod("b", true, true)}, "b a"},
		{[]corev1.Pod{pod("a", true, false), pod("b", false, true)}, "b a"},
		{[]corev1.Pod{pod("a", false, false), pod("b", false, true), pod("c", true, true), pending}, "c b a"},
		{[]corev1.Pod{pod("a", false, true), pod("b", false, true)}, "a b"},
	} {
		got, err := Operators(tc.pods)
		names := make([]string, 0, len(got))
		for _, p := range got {
			names = append(names, p.Name)
		}
		if strings.Join(names, " ") != tc.want || err != nil {
			t.Errorf("%v, not %s; %v", names, tc.want, err)
		}
	}
	if _, err := Operators([]corev1.Pod{pending}); err == nil {
		t.Error("no pod runs, and that is no error")
	}
}
