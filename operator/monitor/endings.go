// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Endings notes how pods end while this process runs, also before it leads: a pod that its kubelet has ended is gone a moment
// later, and the leader of that moment must not wait for it.
type Endings struct{ m *Monitor }

// Endings returns what to run beside the loops.
func (m *Monitor) Endings() Endings { return Endings{m} }

// NeedLeaderElection says that the process that may lead next must know it too.
func (Endings) NeedLeaderElection() bool { return false }

// Start listens until ctx ends.
func (e Endings) Start(ctx context.Context) error {
	informer, err := e.m.Cache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return err
	}
	handler := toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok && pod.Labels[v1alpha1.LabelName] == v1alpha1.NameMySQL && pod.Labels[v1alpha1.LabelGroup] != "" && e.m.ends.Note(pod) {
			e.m.wake(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelGroup]})
		}
	}}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
