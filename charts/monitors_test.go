// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	operator "github.com/mysql-mfg/mfg/operator/render"
)

// What is used of two kinds of the Prometheus operator.
type (
	serviceMonitor struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			monitored `json:",inline"`
			Endpoints []endpoint `json:"endpoints"`
		} `json:"spec"`
	}
	podMonitor struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			monitored           `json:",inline"`
			PodMetricsEndpoints []endpoint `json:"podMetricsEndpoints"`
		} `json:"spec"`
	}
	monitored struct {
		NamespaceSelector struct {
			Any        bool     `json:"any,omitempty"`
			MatchNames []string `json:"matchNames,omitempty"`
		} `json:"namespaceSelector"`
		Selector metav1.LabelSelector `json:"selector"`
	}
	endpoint struct {
		Port        string       `json:"port"`
		Path        string       `json:"path"`
		Interval    string       `json:"interval,omitempty"`
		Relabelings []relabeling `json:"relabelings,omitempty"`
	}
	relabeling struct {
		SourceLabels []string `json:"sourceLabels"`
		TargetLabel  string   `json:"targetLabel"`
	}
)

func (m monitored) selects(t *testing.T, of map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&m.Selector)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(of))
}

func (m monitored) namespaces() []string {
	if m.NamespaceSelector.Any {
		return []string{"*"}
	}
	return m.NamespaceSelector.MatchNames
}

// The ServiceMonitor finds the metrics port of one Service, and nothing else.
func TestServiceMonitor(t *testing.T) {
	all := objects(t, monitoring(t, `serviceMonitor: {enabled: true, labels: {release: p}, interval: 15s}`))
	m := only[serviceMonitor](t, all)
	if m.Labels["release"] != "p" || m.Namespace != "mfg-system" || !slices.Equal(m.Spec.namespaces(), []string{"mfg-system"}) {
		t.Errorf("%+v", m)
	}
	if diff := cmp.Diff([]endpoint{{Port: "metrics", Path: wire.PathMetrics, Interval: "15s"}}, m.Spec.Endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	var found []string
	for _, object := range all {
		s, is := object.(*corev1.Service)
		if !is || !m.Spec.selects(t, s.Labels) {
			continue
		}
		for _, port := range s.Spec.Ports {
			if port.Name == m.Spec.Endpoints[0].Port {
				found = append(found, s.Name)
			}
		}
	}
	if !slices.Equal(found, []string{"mfg-metrics"}) {
		t.Errorf("finds %v", found)
	}
}

// The PodMonitor finds the sidecar's port of a pod as the operator makes it, and names its series as the operator names its own.
func TestPodMonitor(t *testing.T) {
	for values, namespaces := range map[string][]string{"": {"*"}, "watchNamespaces: [shop, billing]": {"shop", "billing"}} {
		m := only[podMonitor](t, objects(t, monitoring(t, `podMonitor: {enabled: true, labels: {release: p}}`, values)))
		if m.Labels["release"] != "p" || m.Namespace != "mfg-system" || !slices.Equal(m.Spec.namespaces(), namespaces) {
			t.Errorf("%q: %+v", values, m)
		}
		if len(m.Spec.PodMetricsEndpoints) != 1 || m.Spec.PodMetricsEndpoints[0].Path != wire.PathMetrics {
			t.Fatalf("endpoints %+v", m.Spec.PodMetricsEndpoints)
		}
		site := v1alpha1.Site{Name: "paris", Role: v1alpha1.PrimaryCandidate}
		group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop"}}
		group.Spec.Sites = []v1alpha1.Site{site}
		pod := operator.Deployment(operator.Input{Group: group}, site).Spec.Template
		if !m.Spec.selects(t, pod.Labels) || m.Spec.selects(t, map[string]string{v1alpha1.LabelName: v1alpha1.NameMySQL}) {
			t.Errorf("selector %+v, labels of the pod %v", m.Spec.Selector, pod.Labels)
		}
		var found []int32
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			for _, port := range container.Ports {
				if port.Name == m.Spec.PodMetricsEndpoints[0].Port {
					found = append(found, port.ContainerPort)
				}
			}
		}
		if !slices.Equal(found, []int32{wire.PortSidecar}) {
			t.Errorf("ports %v", found)
		}
		var named []string
		for _, r := range m.Spec.PodMetricsEndpoints[0].Relabelings {
			named = append(named, r.TargetLabel)
		}
		if !slices.Equal(named, []string{"mysql_namespace", "failover_group", "site"}) {
			t.Errorf("series are named by %v", named)
		}
	}
}

func TestNoMonitorUnlessAsked(t *testing.T) {
	for _, object := range objects(t, render(t, operatorChart, `crds: {enabled: false}`)) {
		switch object.(type) {
		case *serviceMonitor, *podMonitor:
			t.Errorf("%+v", object)
		}
	}
}

// monitoring renders the operator's chart with values of monitoring.
func monitoring(t *testing.T, asked string, more ...string) string {
	t.Helper()
	values := "crds: {enabled: false}\nmonitoring: {" + asked + "}\n"
	for _, m := range more {
		values += m + "\n"
	}
	return render(t, operatorChart, values)
}
