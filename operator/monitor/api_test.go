// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// apiServer is one that knows a group, its pods, their nodes and its primary Service. What is written to a group counts only over the
// version that stands.
type apiServer struct {
	client.Client

	mu    sync.Mutex
	group *v1alpha1.MysqlFailoverGroup
	pods  []corev1.Pod
	nodes map[string]*corev1.Node
	// selected is the selector of the primary Service, nil without one.
	selected map[string]string
	// reads and writes count those of the group; meanwhile is done before each write to it; refuse fails writes.
	reads, writes int
	meanwhile     func()
	refuse        error
	labelled      []string
}

func (a *apiServer) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	missing := apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	switch obj := obj.(type) {
	case *v1alpha1.MysqlFailoverGroup:
		a.reads++
		a.group.DeepCopyInto(obj)
		return nil
	case *corev1.Node:
		if node := a.nodes[key.Name]; node != nil {
			node.DeepCopyInto(obj)
			return nil
		}
	case *corev1.Service:
		if a.selected != nil && key.Name == v1alpha1.PrimaryService(a.group.Name) && key.Namespace == a.group.Namespace {
			obj.Spec.Selector = a.selected
			return nil
		}
	}
	return missing
}

func (a *apiServer) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if pods, is := list.(*corev1.PodList); is {
		pods.Items = a.pods
	}
	return nil
}

func (a *apiServer) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.labelled = append(a.labelled, obj.GetName())
	return a.refuse
}

// Apply takes the primary Service.
func (a *apiServer) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var service corev1.Service
	body, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(body, &service)
	}
	if err != nil {
		return err
	}
	if service.APIVersion != "v1" || service.Kind != "Service" || service.Namespace != a.group.Namespace || service.Name != v1alpha1.PrimaryService(a.group.Name) {
		return fmt.Errorf("it is not the primary Service that is written: %s", body)
	}
	a.selected = service.Spec.Selector
	return a.refuse
}

func (a *apiServer) Status() client.SubResourceWriter { return statusWriter{api: a} }

type statusWriter struct {
	client.SubResourceWriter
	api *apiServer
}

func (w statusWriter) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	s := w.api
	if s.meanwhile != nil {
		s.meanwhile()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	body, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var group v1alpha1.MysqlFailoverGroup
	if err := json.Unmarshal(body, &group); err != nil {
		return err
	}
	if group.APIVersion != v1alpha1.GroupVersion.String() || group.Kind != "MysqlFailoverGroup" || group.Namespace != s.group.Namespace || group.Name != s.group.Name {
		return fmt.Errorf("it is not the group that is written: %s", body)
	}
	if s.refuse != nil {
		return s.refuse
	}
	if group.ResourceVersion != s.group.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{}, group.Name, nil)
	}
	s.group.Status = group.Status
	s.changed()
	if versioned, is := obj.(interface{ SetResourceVersion(version string) }); is {
		versioned.SetResourceVersion(s.group.ResourceVersion)
	}
	return nil
}

// changed gives the group another version.
func (a *apiServer) changed() { a.group.ResourceVersion += "+" }

// same compares what the monitor hands on.
func same(t *testing.T, what string, want, got any, more ...cmp.Option) {
	t.Helper()
	more = append(more, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b gtid.Set) bool { return a.Equal(b) }))
	if diff := cmp.Diff(want, got, more...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
