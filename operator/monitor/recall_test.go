// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// slowAPI is an API server whose cache still shows the Service at east, and that takes for ever over a move to west.
type slowAPI struct {
	client.Client
	began, ended chan struct{}
	written      []string
}

func (s *slowAPI) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if service, is := obj.(*corev1.Service); is {
		service.Spec.Selector = selector("orders", "east", v1alpha1.RolePrimary)
	}
	return nil
}

func (s *slowAPI) Apply(ctx context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	body, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	if strings.Contains(string(body), `"west"`) {
		close(s.began)
		<-ctx.Done()
		close(s.ended)
		return ctx.Err()
	}
	s.written = append(s.written, "east")
	return nil
}

// TestAMoveOfTheServiceDoesNotOutliveTheHandover: reverted, the Service must not be taken to the target by what a handover left
// behind, and what the cache shows from before proves nothing.
func TestAMoveOfTheServiceDoesNotOutliveTheHandover(t *testing.T) {
	api := &slowAPI{began: make(chan struct{}), ended: make(chan struct{})}
	l := testLoop(t, &pushes{}, nil)
	l.m.Client = api
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Name = "orders"
	for range 3 {
		l.movePrimary(t.Context(), group, "west") // one at a time: a second would close a closed channel
	}
	<-api.began
	for range 2 {
		if err := l.one(t.Context(), group, failover.Snapshot{}, failover.Select{Site: "east"}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-api.ended:
	default:
		t.Error("the move to west goes on")
	}
	if len(api.written) != 1 {
		t.Errorf("the Service was written %d times, want once: then the cache counts again", len(api.written))
	}
}
