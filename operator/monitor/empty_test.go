// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A request that names no site is answered like any other, and what else the annotations say stays.
func TestARequestWithoutASiteIsAnswered(t *testing.T) {
	const last = "refused, it names no site; the sites are east, west, south"
	for name, tc := range map[string]struct {
		annotations, want map[string]string
	}{
		"planned": {
			map[string]string{v1alpha1.AnnotationPlannedFailover: "", "mine": "stays"},
			map[string]string{v1alpha1.AnnotationLastRequest: v1alpha1.AnnotationPlannedFailover + "=: " + last, "mine": "stays"},
		},
		"forced": {
			map[string]string{v1alpha1.AnnotationForceFailover: "", v1alpha1.AnnotationPlannedFailover: "west"},
			map[string]string{v1alpha1.AnnotationLastRequest: v1alpha1.AnnotationForceFailover + "=: " + last, v1alpha1.AnnotationPlannedFailover: "west"},
		},
		"never": {
			map[string]string{v1alpha1.AnnotationForceFailover: "north"},
			map[string]string{v1alpha1.AnnotationLastRequest: v1alpha1.AnnotationForceFailover + "=north: refused, north is no site of the group; those that may take over are east, west"},
		},
		"dr-only": {
			map[string]string{v1alpha1.AnnotationForceFailover: "south"},
			map[string]string{v1alpha1.AnnotationLastRequest: v1alpha1.AnnotationForceFailover + "=south: refused, south is dr-only (make it a primary-candidate first, if that is what is wanted); those that may take over are east, west"},
		},
		"one that may": {map[string]string{v1alpha1.AnnotationForceFailover: "west"}, map[string]string{v1alpha1.AnnotationForceFailover: "west"}},
		"none":         {map[string]string{v1alpha1.AnnotationPlannedFailover: "west"}, map[string]string{v1alpha1.AnnotationPlannedFailover: "west"}},
	} {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		group := &v1alpha1.MysqlFailoverGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", Annotations: tc.annotations},
			Spec:       v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "east"}, {Name: "west"}, {Name: "south", Role: v1alpha1.DROnly}}},
		}
		l := testLoop(t, &pushes{}, nil)
		l.m.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(group).Build()
		l.answerEmpty(t.Context(), group)
		got := &v1alpha1.MysqlFailoverGroup{}
		if err := l.m.Client.Get(t.Context(), l.key, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got.Annotations); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", name, diff)
		}
	}
}

// An annotation without a value wakes the loop like one with a value, and asks to give up a planned failover like that.
func TestAnEmptyAnnotationIsSeen(t *testing.T) {
	for _, key := range []string{v1alpha1.AnnotationPlannedFailover, v1alpha1.AnnotationForceFailover, v1alpha1.AnnotationAbortFailover} {
		if sameAnnotations(nil, map[string]string{key: ""}) {
			t.Errorf("%s= goes unnoticed", key)
		}
	}
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationAbortFailover: ""}}}
	if !policy(group).AbortPlanned {
		t.Error("an abort without a value gives nothing up, and waits for ever")
	}
	if policy(&v1alpha1.MysqlFailoverGroup{}).AbortPlanned {
		t.Error("what nobody asked for is given up")
	}
}
