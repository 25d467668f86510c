// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// TestNoOperatorForWhoMayOnlyForward: a user who may only forward ports sees that no operator runs. The proxy's refusal says nothing of it,
// but the empty list of its pods does.
func TestNoOperatorForWhoMayOnlyForward(t *testing.T) {
	gone := func() *fakeAPI {
		f := loadHealthy(t)
		for _, path := range []string{livePath, streamPath} {
			f.answers[path] = status(403, metav1.StatusReasonForbidden, "no services/proxy")
		}
		f.objects = map[string]any{operatorPods: corev1.PodList{}}
		return f
	}
	o := runOptions{cluster: patient(time.Minute)}
	got := run(t, gone(), o, "status", "orders", "-n", "shop")
	if got.code != cli.ExitDegraded || !strings.Contains(got.out, "no pod of the operator runs in namespace mfg-system") || !strings.Contains(got.out, "nothing would fail over") {
		t.Errorf("status: %+v", got)
	}
	f := gone()
	got = run(t, f, o, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--yes")
	if got.code != cli.ExitRefused || len(f.patched) != 0 {
		t.Errorf("failover: %+v, asked %v", got, f.patched)
	}
	for name, denied := range map[string]bool{"may forward": false, "may do neither": true} {
		f := gone()
		if denied {
			f.objects = nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var first *feed.Link
		s := &feed.Stream{Routes: clusterOf(t, f).Routes("mfg-system", "shop"), Now: time.Now}
		s.Follow(ctx, func(c feed.Changes) {
			if first == nil {
				first = c.Link
			}
			cancel()
		})
		cancel()
		if first == nil || first.Up || first.Denied != denied {
			t.Errorf("%s: %+v", name, first)
		}
	}
}
