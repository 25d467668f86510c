// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	// labelEvery is how often the labels are looked at, labelRetry how soon after a failure.
	labelEvery = 5 * time.Second
	labelRetry = time.Second
	// labelPatience is how long one look may take.
	labelPatience = 3 * time.Second
)

// Label puts the pod of this process in the Service of the operator, by a label, and takes every other one out. Readiness would not do: the
// endpoint of a lost node stays ready until Kubernetes takes the node for lost, and that is much later than the next leader begins.
type Label struct {
	Term   *Term
	Reader client.Reader
	Writer client.Client
	// Pod is that of this process.
	Pod client.ObjectKey
	Log *slog.Logger
}

// NeedLeaderElection says that only who leads labels.
func (l Label) NeedLeaderElection() bool { return true }

// Start keeps the labels right until ctx ends.
func (l Label) Start(ctx context.Context) error {
	for {
		wait := labelEvery
		if err := l.settle(ctx); err != nil && ctx.Err() == nil {
			l.Log.Error("label the pod that leads; sidecars and kubectl mfg may not reach it", "error", err)
			wait = labelRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// settle makes the labels right once.
func (l Label) settle(ctx context.Context) error {
	if !l.Term.MaySpeak(time.Now()) {
		return nil // another one may lead: its label is not to be taken away
	}
	ctx, cancel := context.WithTimeout(ctx, labelPatience)
	defer cancel()
	var own corev1.Pod
	if err := l.Reader.Get(ctx, l.Pod, &own); err != nil {
		return fmt.Errorf("read own pod: %w", err)
	}
	// Its own label first: the endpoint of who led before may be dead.
	err := l.set(ctx, &own, true)
	var pods corev1.PodList
	ours := client.MatchingLabels{}
	for _, key := range []string{v1alpha1.LabelName, v1alpha1.LabelInstance} {
		ours[key] = own.Labels[key]
	}
	if listed := l.Reader.List(ctx, &pods, client.InNamespace(l.Pod.Namespace), ours, client.HasLabels{v1alpha1.LabelLeader}); listed != nil {
		return errors.Join(err, fmt.Errorf("list pods of the operator: %w", listed))
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.UID != own.UID {
			err = errors.Join(err, client.IgnoreNotFound(l.set(ctx, pod, false)))
		}
	}
	return err
}

func (l Label) set(ctx context.Context, pod *corev1.Pod, leads bool) error {
	value := `null`
	if leads {
		if pod.Labels[v1alpha1.LabelLeader] == v1alpha1.Leads {
			return nil
		}
		value = `"` + v1alpha1.Leads + `"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, v1alpha1.LabelLeader, value)
	if err := l.Writer.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("label pod %s: %w", pod.Name, err)
	}
	return nil
}
