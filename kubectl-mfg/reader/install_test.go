// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func operator(args ...string) *fake.Clientset {
	return fake.NewClientset(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: "mfg-operator", Labels: map[string]string{"app.kubernetes.io/name": "mfg", "app.kubernetes.io/component": "operator"}},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: args}}}}},
	})
}

func TestInstalled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		named  string
		want   Install
		fails  bool
	}{
		"image":              {"the operator's image is of its version", []string{"--backup-image=b:1"}, "", Install{Image: "b:1"}, false},
		"platform":           {"OpenShift refuses pods that name a user", []string{"--platform-assigns-ids=true", "--backup-image=b:1"}, "", Install{Image: "b:1", PlatformAssignsIDs: true}, false},
		"platform off":       {"the images run as root if nobody names a user", []string{"--platform-assigns-ids=false", "--backup-image=b:1"}, "", Install{Image: "b:1"}, false},
		"another image":      {"who names an image has the same platform", []string{"--platform-assigns-ids=true", "--backup-image=b:1"}, "c:2", Install{Image: "c:2", PlatformAssignsIDs: true}, false},
		"no image":           {"a guess would pull what nobody chose", []string{"--x"}, "", Install{}, true},
		"no image but named": {"an operator without backups needs not stand in the way", []string{"--x"}, "c:2", Install{Image: "c:2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Installed(t.Context(), operator(tc.args...), tc.named, "mfg-system")
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

// Who names the image needs no right to read the operator's Deployment.
func TestInstalledWithoutRights(t *testing.T) {
	kube := operator("--backup-image=b:1")
	kube.PrependReactor("list", "deployments", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	if got, err := Installed(t.Context(), kube, "c:2", "mfg-system"); err != nil || got != (Install{Image: "c:2"}) {
		t.Errorf("%+v: %v", got, err)
	}
	if _, err := Installed(t.Context(), kube, "", "mfg-system"); err == nil {
		t.Error("it guessed an image")
	}
}

// TestIDs: the files on a volume are user 999's, and a platform that assigns users refuses pods that name one.
func TestIDs(t *testing.T) {
	for assigns, want := range map[bool]*int64{false: new(int64(999)), true: nil} {
		kube := operator()
		p := &Pod{Kube: kube, Namespace: "shop", Group: "orders", Task: "archive", Name: "orders", Timeout: time.Minute,
			Storage: v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "v"}}, Install: Install{Image: "b:1", PlatformAssignsIDs: assigns}}
		if _, err := p.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		pods, err := kube.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 {
			t.Fatalf("%v: %+v", err, pods)
		}
		got := pods.Items[0].Spec.SecurityContext
		if diff := cmp.Diff([]*int64{want, want, want}, []*int64{got.RunAsUser, got.RunAsGroup, got.FSGroup}); diff != "" || !*got.RunAsNonRoot {
			t.Errorf("platform assigns: %t (-want +got):\n%s", assigns, diff)
		}
	}
}
