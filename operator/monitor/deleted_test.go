// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// cached is a cache with one group and its pods. Whoever writes to it panics.
type cached struct {
	client.Client
	group *v1alpha1.MysqlFailoverGroup
	pods  []corev1.Pod
}

func (c cached) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if group, ok := obj.(*v1alpha1.MysqlFailoverGroup); ok {
		*group = *c.group.DeepCopy()
	}
	return nil
}

func (c cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if pods, ok := list.(*corev1.PodList); ok {
		pods.Items = c.pods
	}
	return nil
}

// noAccess knows no way into any MySQL.
type noAccess struct{ Access }

func (noAccess) Site(context.Context, *v1alpha1.MysqlFailoverGroup, string, string) (mysql.Target, error) {
	return mysql.Target{}, errors.New("no")
}

// TestAGroupThatIsBeingDeletedIsWatched: its pods may have to wait for a keyring to come into escrow (I16), so it must be known which
// pods there are and what their sidecars say. Nothing is written, and no site hears anything new.
func TestAGroupThatIsBeingDeletedIsWatched(t *testing.T) {
	now := metav1.Now()
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", DeletionTimestamp: &now}}
	group.Spec.Sites = []v1alpha1.Site{{Name: "west", Role: v1alpha1.PrimaryCandidate}}
	group.Status.ActiveSite, group.Status.Epoch = "west", 3
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-1", Labels: map[string]string{v1alpha1.LabelSite: "west"}},
		Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	push := &pushes{report: wire.Report{Site: "west", PodUID: "pod-1", Keyring: &wire.KeyringReport{Digest: "sha256:2"}}}
	l := testLoop(t, push, reader{group: group})
	l.m.Client, l.m.Access = cached{group: group, pods: []corev1.Pod{pod}}, noAccess{}
	stands := statement("west", 3, true)
	l.authority.Set(stands, nil, time.Now())
	l.pass(t.Context())
	f := l.facts.Load()
	if f == nil || len(f.Sites) != 1 || f.Sites[0].Pod.UID != "pod-1" || f.Sites[0].Sidecar.Report.Keyring == nil {
		t.Fatalf("seen: %+v", f)
	}
	if got := l.authority.Statement(); got.Epoch != stands.Epoch || got.ActiveSite != stands.ActiveSite || !got.Hold {
		t.Errorf("the sites are told %+v", got)
	}
}
