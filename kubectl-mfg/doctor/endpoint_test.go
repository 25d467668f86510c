// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// endpointCluster shows a certificate as the operator's endpoint, and an authority as ca.crt in the pods of the group.
type endpointCluster struct {
	Cluster
	kube        kubernetes.Interface
	shown       *x509.Certificate
	authorities []byte
}

func (c endpointCluster) Kube() kubernetes.Interface { return c.kube }

func (c endpointCluster) EscrowChain(context.Context, string) ([]*x509.Certificate, error) {
	return []*x509.Certificate{c.shown}, nil
}

func (c endpointCluster) Exec(_ context.Context, e pods.Execution) error {
	_, err := e.Out.Write(c.authorities)
	return err
}

// TestWhoseAuthorityTheSitesUse: the group's ca.crt says nothing of a certificate that the operator makes, which is the default. The sites
// of this group are sealed, so nothing in their own pods tells.
func TestWhoseAuthorityTheSitesUse(t *testing.T) {
	const name = "mfg-auxiliary.mfg-system.svc"
	_, issueOwn := authority(t)
	group, issueGroups := authority(t)
	year := noon.AddDate(1, 0, 0)
	gone := metav1.NewTime(noon.Add(-time.Minute))
	operator := func(name string, args ...string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: name, Labels: map[string]string{"app.kubernetes.io/name": "mfg"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Args: args}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	before := operator("mfg-operator-0", "--escrow-tls-dir=/etc/mfg-escrow-tls")
	before.DeletionTimestamp, before.Finalizers = &gone, []string{"x/y"}
	for what, tc := range map[string]struct {
		operators []*corev1.Pod
		shown     *x509.Certificate
		level     Level
	}{
		"the operator makes it":        {[]*corev1.Pod{operator("mfg-operator-1", "--escrow-url=https://x", "--escrow-own-certificate=true")}, issueOwn(name, year), OK},
		"the flag without a value":     {[]*corev1.Pod{operator("mfg-operator-1", "--escrow-own-certificate")}, issueOwn(name, year), OK},
		"a person makes it":            {[]*corev1.Pod{operator("mfg-operator-1", "--escrow-tls-dir=/etc/mfg-escrow-tls")}, issueGroups(name, year), OK},
		"a person's, of another":       {[]*corev1.Pod{operator("mfg-operator-1", "--escrow-tls-dir=/etc/mfg-escrow-tls")}, issueOwn(name, year), Fail},
		"the flag is off":              {[]*corev1.Pod{operator("mfg-operator-1", "--escrow-own-certificate=false")}, issueOwn(name, year), Fail},
		"the pod of before is leaving": {[]*corev1.Pod{before, operator("mfg-operator-1", "--escrow-own-certificate=true")}, issueOwn(name, year), OK},
		"no operator":                  {nil, issueOwn(name, year), Fail},
	} {
		w, _ := well()
		w.Group.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
		kube := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Group.Namespace, Name: "mysql-a-0",
			Labels: map[string]string{v1alpha1.LabelGroup: w.Group.Name, v1alpha1.LabelName: v1alpha1.NameMySQL}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
		for _, pod := range tc.operators {
			if err := kube.Tracker().Add(pod); err != nil {
				t.Fatal(err)
			}
		}
		op := Op{OperatorNamespace: "mfg-system"}
		w.Escrow = op.escrow(t.Context(), endpointCluster{kube: kube, shown: tc.shown, authorities: group}, w.Group)
		if found := escrow(t.Context(), w); len(found) != 1 || found[0].Level != tc.level {
			t.Errorf("%s: %+v", what, found)
		}
	}
}

// lostNode is a cluster in which an exec into some pods gets no answer.
type lostNode struct {
	endpointCluster
	lost  []string
	asked *[]string
}

func (c lostNode) Exec(ctx context.Context, e pods.Execution) error {
	*c.asked = append(*c.asked, e.Pod)
	if !slices.Contains(c.lost, e.Pod) {
		return c.endpointCluster.Exec(ctx, e)
	}
	if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > fileTimeout {
		return errors.New("this would wait for long")
	}
	return context.DeadlineExceeded
}

// TestPublicFileOfAnotherPod: one node that is lost keeps nobody from reading the file in another pod.
func TestPublicFileOfAnotherPod(t *testing.T) {
	for what, tc := range map[string]struct {
		ready, lost []string
		asked       string
		says        string
	}{
		"a ready one first":      {ready: []string{"b"}, lost: []string{"a"}, asked: "b"},
		"the next after no word": {lost: []string{"a"}, asked: "a b"},
		"no one answers":         {lost: []string{"a", "b"}, asked: "a b", says: "pod a: context deadline exceeded"},
	} {
		w, _ := well()
		kube := fake.NewClientset()
		for _, name := range []string{"a", "b"} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Group.Namespace, Name: name,
				Labels: map[string]string{v1alpha1.LabelGroup: w.Group.Name, v1alpha1.LabelName: v1alpha1.NameMySQL}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			if slices.Contains(tc.ready, name) {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			if err := kube.Tracker().Add(pod); err != nil {
				t.Fatal(err)
			}
		}
		var asked []string
		got, err := publicFile(t.Context(), lostNode{endpointCluster{kube: kube, authorities: []byte("PEM")}, tc.lost, &asked}, w.Group, authoritiesFile)
		if strings.Join(asked, " ") != tc.asked {
			t.Errorf("%s: asked %v", what, asked)
		}
		if tc.says == "" && (err != nil || string(got) != "PEM") || tc.says != "" && (err == nil || err.Error() != tc.says) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}
