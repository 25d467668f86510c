// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

// stalePatience is how long an engine may show an old certificate before its pod is replaced: the kubelet brings the new one into the pod
// within a minute or two, and the loop has the engine read it every ten seconds.
const stalePatience = 5 * time.Minute

const (
	// hungPatience is how long an engine may answer nothing, while its port takes connections, before its pod is replaced: longer than any
	// command may take. By then the master has moved away, because that waits for much less.
	hungPatience = time.Minute
	// hungPause is how long after that the next pod of the site may be replaced for the same reason.
	hungPause = 10 * time.Minute
	// listenTimeout bounds the check whether the port takes connections.
	listenTimeout = 300 * time.Millisecond
)

// stale notes since when a cache is not as it should be, and what was done about it. It outlives the pod.
type stale struct {
	// since is when it first showed an old certificate, silent when it first did not answer.
	since, silent time.Time
	// full is when it first refused the operator because it has as many clients as it may have.
	full time.Time
	// hungAt is when a pod of the site was last marked because it hung, or was full.
	hungAt time.Time
	// asked is the certificate for which a pod of the site was marked. The loop marks once for each: if the next pod does not show
	// that one either, a restart does not help.
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
	_ = e.Renew(ctx) // the next look sees the outcome: there is none while the pod does not have the new files yet
	if k.stale.since.IsZero() {
		k.stale.since = now
	}
	return now.Sub(k.stale.since)
}

// The reasons to mark a pod.
const (
	staleCertificate = "Certificate"
	staleHung        = "Hung"
	staleFull        = "Full"
)

// markStale marks the pods whose engines do not take the new certificate, hang, or were abandoned with their clients. The controller replaces them as for an update: one at a time,
// replicas first, and the master's once the role has moved.
func (l *loop) markStale(ctx context.Context, k look) {
	for _, p := range k.snapshot.Pods {
		pod, link := k.pods[p.Site], l.links[p.Site]
		if pod == nil || link == nil || pod.Annotations[v1alpha1.AnnotationCacheStale] != "" {
			continue
		}
		why := ""
		switch {
		case p.Reachable && outdated(link, k.began):
			why = staleCertificate
		case !p.Reachable && l.hangs(ctx, k, pod, link):
			why = staleHung
		case abandoned(k.snapshot, p) && link.fullFor(k.began) > hungPatience && k.began.Sub(link.stale.hungAt) > hungPause:
			why = staleFull
		default:
			continue
		}
		if err := l.mark(ctx, pod, why); err != nil {
			l.log.Error("mark pod", "site", p.Site, "error", err)
			continue
		}
		l.log.Info("the engine does not take its new certificate, hangs, or serves clients that it should not; its pod is to be replaced", "site", p.Site, "reason", why)
		if why == staleCertificate {
			link.stale.asked = link.target.Certificate
		} else {
			link.stale.hungAt = k.began
		}
	}
}

// abandoned is true for the process of a former master that handed over to nobody, and refuses the operator because it is full. It cannot be
// told to follow, nor to cut its clients: they would go on to write what is thrown away, and keep it full.
func abandoned(s cache.Snapshot, p cache.Pod) bool {
	last := s.Status.Last
	return p.Full && !p.Reachable && last != nil && last.From == p.Site && last.To != p.Site && last.Reason != "" && p.Began.Before(last.At.Time)
}

// fullFor is for how long an engine has refused the operator because it is full.
func (k *link) fullFor(now time.Time) time.Duration {
	if k.stale.full.IsZero() {
		return 0
	}
	return now.Sub(k.stale.full)
}

// outdated is true for an engine that has shown an old certificate for too long.
func outdated(link *link, now time.Time) bool {
	return !link.stale.since.IsZero() && now.Sub(link.stale.since) > stalePatience && !bytes.Equal(link.stale.asked, link.target.Certificate)
}

// listens is an engine whose port may take connections though it answers nothing. *engine.Client is one.
type listens interface {
	Listens(ctx context.Context) bool
}

// hangs is true for an engine that has answered nothing for long while its port takes connections, so that the kubelet takes it for healthy.
// An engine that cannot be reached at all may be healthy: then the network is broken. If another cache answers, this operator's network works.
func (l *loop) hangs(ctx context.Context, k look, pod *corev1.Pod, link *link) bool {
	s := link.stale
	if s.silent.IsZero() || k.began.Sub(s.silent) <= hungPatience || k.began.Sub(s.hungAt) <= hungPause || !podReady(pod) {
		return false
	}
	if !slices.ContainsFunc(k.snapshot.Pods, func(p cache.Pod) bool { return p.Reachable }) {
		return false
	}
	e, can := link.engine.(listens)
	if !can {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	return e.Listens(ctx)
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// answered notes whether the engine answered. One that refuses the password, or shows a certificate that is not believed, does not hang: if
// its pod were replaced for that, it would be replaced again and again.
func (k *link) answered(err error, now time.Time) {
	if full := errors.Is(err, engine.ErrFull) || errors.Is(err, engine.ErrDropped); !full {
		k.stale.full = time.Time{}
	} else if k.stale.full.IsZero() {
		k.stale.full = now
	}
	switch {
	case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded):
		k.stale.silent = time.Time{}
	case k.stale.silent.IsZero():
		k.stale.silent = now
	}
}

func (l *loop) mark(ctx context.Context, pod *corev1.Pod, why string) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": map[string]string{v1alpha1.AnnotationCacheStale: why}}})
	if err != nil {
		return err
	}
	marked := &corev1.Pod{}
	marked.Namespace, marked.Name = pod.Namespace, pod.Name
	return client.IgnoreNotFound(l.m.Client.Patch(ctx, marked, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagerCache)))
}
