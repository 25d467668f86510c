// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// labels writes the labels of all pods in parallel: without an API server it takes no longer than one write.
func (l *loop) labels(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) {
	quiet := d.Unheard(s)
	pods := l.cluster().Newest(ctx, group)
	var all sync.WaitGroup
	for _, v := range d.Views {
		pod := pods[v.Name]
		want := marks(v.Role, v.Healthy || v.Serves, v.Readable, v.Protected)
		if pod == nil || labelled(pod, want) {
			continue
		}
		if quiet && (!v.Protected || pod.Labels[v1alpha1.LabelProtected] == v1alpha1.HealthyYes) {
			continue // but a site that must not be evicted is protected at once: other sources tell that too
		}
		all.Go(func() {
			if err := l.label(ctx, pod, want); err != nil {
				l.log.Error("label pod", "site", v.Name, "error", err)
			}
		})
	}
	all.Wait()
}

// marks are the labels that say what a site is.
func marks(role string, healthy, readable, protected bool) map[string]string {
	word := func(b bool) string {
		if b {
			return v1alpha1.HealthyYes
		}
		return v1alpha1.HealthyNo
	}
	return map[string]string{v1alpha1.LabelRole: role, v1alpha1.LabelHealthy: word(healthy),
		v1alpha1.LabelReadable: word(readable), v1alpha1.LabelProtected: word(protected)}
}

// labelled is true for a pod that has these labels already.
func labelled(pod *corev1.Pod, want map[string]string) bool {
	for key, value := range want {
		if pod.Labels[key] != value {
			return false
		}
	}
	return true
}

// label writes what a site is on its live pod.
func (l *loop) label(ctx context.Context, pod *corev1.Pod, want map[string]string) error {
	if labelled(pod, want) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": want}})
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	return l.m.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagerMonitor))
}
