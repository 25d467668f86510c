// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func operatorPod(name, instance string, leads bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "mfg-system", Name: name, UID: types.UID(name),
		Labels: map[string]string{v1alpha1.LabelName: "mfg", v1alpha1.LabelInstance: instance},
	}}
	if leads {
		pod.Labels[v1alpha1.LabelLeader] = v1alpha1.Leads
	}
	return pod
}

func labels(t *testing.T, c client.Client) map[string]bool {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	led := map[string]bool{}
	for _, pod := range pods.Items {
		if pod.Labels[v1alpha1.LabelName] != "mfg" {
			t.Errorf("%s lost a label: %v", pod.Name, pod.Labels)
		}
		if pod.Labels[v1alpha1.LabelLeader] == v1alpha1.Leads {
			led[pod.Name] = true
		}
	}
	return led
}

func newLabel(c client.Client, renewed time.Time) Label {
	term := &Term{}
	term.Renewed(renewed)
	return Label{Term: term, Reader: c, Writer: c, Pod: client.ObjectKey{Namespace: "mfg-system", Name: "new"}, Log: slog.New(slog.DiscardHandler)}
}

func TestTheLeaderTakesTheServiceOver(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(operatorPod("old", "mfg", true), operatorPod("new", "mfg", false), operatorPod("other", "blue", true)).Build()
	for range 2 {
		if err := newLabel(c, time.Now()).settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if led := labels(t, c); led["old"] || !led["new"] || !led["other"] {
			t.Errorf("leaders: %v; the other release has a leader of its own", led)
		}
	}
}

// TestWhoDidNotRenewLeavesLabelsAlone: a process that stood still must not take the Service from the one that leads now.
func TestWhoDidNotRenewLeavesLabelsAlone(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(operatorPod("old", "mfg", true), operatorPod("new", "mfg", false)).Build()
	if err := newLabel(c, time.Now().Add(-time.Minute)).settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if led := labels(t, c); !led["old"] || led["new"] {
		t.Errorf("leaders: %v", led)
	}
}

// TestOneThatCannotBeLabelledDoesNotHoldTheOthersUp: what failed is told, and tried again.
func TestOneThatCannotBeLabelledDoesNotHoldTheOthersUp(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(operatorPod("a-old", "mfg", true), operatorPod("b-old", "mfg", true), operatorPod("new", "mfg", false)).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetName() == "a-old" {
				return errors.New("refused")
			}
			return c.Patch(ctx, o, p, opts...)
		}}).Build()
	if err := newLabel(c, time.Now()).settle(t.Context()); err == nil {
		t.Error("a label that stays is not told")
	}
	if led := labels(t, c); !led["new"] || led["b-old"] {
		t.Errorf("leaders: %v", led)
	}
}

func TestOnlyLabelsWaitForTheElection(t *testing.T) {
	if !(Label{}).NeedLeaderElection() || (Watch{}).NeedLeaderElection() || (Warm{}).NeedLeaderElection() {
		t.Error("a standby has to watch and to be warm, and must not label")
	}
}
