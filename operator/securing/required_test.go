// SPDX-License-Identifier: Apache-2.0

package securing

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// made is the pod of a site as it is rendered in a phase.
func made(phase v1alpha1.TLSPhase) corev1.PodSpec {
	group := scopetest.Group(scopetest.Running)
	group.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "tls"}
	group.Status.TLS = &v1alpha1.TLSStatus{Phase: phase, Later: true}
	return render.Deployment(render.Input{Group: group}, group.Spec.Sites[1]).Spec.Template.Spec
}

func hashed(hash string) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: "one", Annotations: map[string]string{v1alpha1.AnnotationSpecHash: hash}}
}

// TestWhatASiteRefuses is read from the pod that runs, and from what would run next.
func TestWhatASiteRefuses(t *testing.T) {
	before, after := made(v1alpha1.TLSClients), made(v1alpha1.TLSRequired)
	for name, tc := range map[string]struct {
		deployment       string // its hash; that of the pod is 1 or 2
		pod              *corev1.PodSpec
		change           func(*scope.Scope)
		refuses, accepts bool
	}{
		"updated":                   {"2", &after, nil, true, false},
		"not updated":               {"1", &before, nil, false, true},
		"the old pod runs yet":      {"2", &before, nil, false, true},
		"another update is on":      {"1", &after, nil, false, false},
		"no pod":                    {"2", nil, nil, false, false},
		"no Deployment":             {"", &after, nil, false, false},
		"MySQL does not answer":     {"2", &after, func(s *scope.Scope) { s.Facts.Sites["b"] = scope.SiteFacts{PodUID: "one"} }, false, false},
		"it was another pod's":      {"2", &after, func(s *scope.Scope) { s.Pods["b"].UID = "two" }, false, false},
		"the pod is on its way out": {"2", &after, func(s *scope.Scope) { s.Pods["b"].DeletionTimestamp = new(metav1.Now()) }, false, false},
	} {
		s := &scope.Scope{
			Group: scopetest.Group(), Pods: map[string]*corev1.Pod{}, Deployments: map[string]*appsv1.Deployment{},
			Facts: scope.GroupFacts{Sites: map[string]scope.SiteFacts{"b": {PodUID: "one", MysqlUp: true}}},
		}
		if tc.deployment != "" {
			s.Deployments["b"] = &appsv1.Deployment{ObjectMeta: hashed(tc.deployment)}
		}
		if tc.pod != nil {
			s.Pods["b"] = &corev1.Pod{ObjectMeta: hashed(map[bool]string{true: "1", false: "2"}[tc.pod == &before]), Spec: *tc.pod}
		}
		if tc.change != nil {
			tc.change(s)
		}
		if got := secureSite(s, "b"); got.Refuses != tc.refuses || got.Accepts != tc.accepts {
			t.Errorf("%s: %+v, want refuses %t, accepts %t", name, got, tc.refuses, tc.accepts)
		}
	}
}
