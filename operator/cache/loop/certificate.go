// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// stalePatience is how long an engine may show an old certificate before its pod is replaced: the kubelet brings the new one into the pod
// within a minute or two, and the engine is told every ten seconds to read it.
const stalePatience = 5 * time.Minute

// stale is how long a cache has shown an old certificate.
type stale struct {
	since time.Time
	// asked is the certificate for which a pod of the site was marked. It is marked once for each: if its successor does not show that
	// one either, a restart does not help.
	asked []byte
}

// renewable is an engine that has a certificate. *engine.Client is one.
type renewable interface {
	Stale() bool
	Renew(ctx context.Context) error
}

// renew has an engine that shows an old certificate read the new one, and says for how long it has shown the old one.
func (k *link) renew(ctx context.Context, now time.Time) time.Duration {
	e, can := k.engine.(renewable)
	if !can || !e.Stale() {
		k.stale.since = time.Time{}
		return 0
	}
	_ = e.Renew(ctx) // what came of it the next look sees: while the pod does not have the new files yet, it is nothing
	if k.stale.since.IsZero() {
		k.stale.since = now
	}
	return now.Sub(k.stale.since)
}

// markStale marks the pods whose engines do not take the new certificate. The controller replaces them as it does for an update: one at a
// time, replicas first, and the master's once the role has moved.
func (l *loop) markStale(ctx context.Context, k look) {
	for site, link := range l.links {
		pod := k.pods[site]
		if pod == nil || link.stale.since.IsZero() || k.began.Sub(link.stale.since) <= stalePatience || bytes.Equal(link.stale.asked, link.target.Certificate) {
			continue
		}
		if err := l.mark(ctx, pod); err != nil {
			l.log.Error("mark pod", "site", site, "error", err)
			continue
		}
		l.log.Info("the engine does not read its new certificate; its pod is to be replaced", "site", site)
		link.stale.asked = link.target.Certificate
	}
}

func (l *loop) mark(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": map[string]string{v1alpha1.AnnotationCacheStale: "Certificate"}}})
	if err != nil {
		return err
	}
	marked := &corev1.Pod{}
	marked.Namespace, marked.Name = pod.Namespace, pod.Name
	return client.IgnoreNotFound(l.m.Client.Patch(ctx, marked, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagerCache)))
}
