// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// A rotation waits for updates that are in flight. A pod that waits for its turn with another version of the operator waits for days, so it is
// none; but only if that alone makes it different, by what was persisted before this look.
func TestARotationDoesNotWaitForATurn(t *testing.T) {
	const ours = "r2"
	kept := func(revision, template string, asked bool) *v1alpha1.UpgradeStatus {
		return &v1alpha1.UpgradeStatus{Revision: revision, Sites: []v1alpha1.UpgradeSite{{Name: "c", Template: template, Behind: !asked, Asked: asked}}}
	}
	for name, tt := range map[string]struct {
		// sidecar is the image that the pods have; wished for is "next".
		sidecar string
		kept    func(want string) *v1alpha1.UpgradeStatus
		turn    bool
		noPod   bool
		refused bool
		missing bool
		typo    bool
		want    string
	}{
		"up to date":                 {sidecar: "next", kept: func(string) *v1alpha1.UpgradeStatus { return nil }},
		"it waits for its turn":      {sidecar: "old", kept: func(want string) *v1alpha1.UpgradeStatus { return kept(ours, want, false) }},
		"nothing was persisted yet":  {sidecar: "old", kept: func(string) *v1alpha1.UpgradeStatus { return nil }, want: "the pod of c is replaced"},
		"it has the turn":            {sidecar: "old", kept: func(want string) *v1alpha1.UpgradeStatus { return kept(ours, want, false) }, turn: true, want: "the pod of c is replaced"},
		"it was asked for":           {sidecar: "old", kept: func(want string) *v1alpha1.UpgradeStatus { return kept(ours, want, true) }, want: "the pod of c is replaced"},
		"another wish by now":        {sidecar: "old", kept: func(string) *v1alpha1.UpgradeStatus { return kept(ours, "another", false) }, want: "the pod of c is replaced"},
		"another version's word":     {sidecar: "old", kept: func(want string) *v1alpha1.UpgradeStatus { return kept("r1", want, false) }, want: "the pod of c is replaced"},
		"a recipient is malformed":   {sidecar: "old", kept: func(string) *v1alpha1.UpgradeStatus { return nil }, typo: true},
		"its pod is being made anew": {sidecar: "old", kept: func(want string) *v1alpha1.UpgradeStatus { return kept(ours, want, false) }, noPod: true, want: "the pod of c is replaced"},
		"it is not made yet":         {sidecar: "next", kept: func(string) *v1alpha1.UpgradeStatus { return nil }, missing: true, want: "the pod of c is replaced"},
		"it cannot be made":          {sidecar: "next", kept: func(string) *v1alpha1.UpgradeStatus { return nil }, missing: true, refused: true},
	} {
		group := scopetest.Group(scopetest.Running)
		in := render.Input{Group: group, Install: render.Install{SidecarImage: "next"}}
		s := &scope.Scope{Group: group, In: in, Now: time.Now(), Known: true, Deployments: map[string]*appsv1.Deployment{}, Pods: map[string]*corev1.Pod{}}
		var want string
		for _, site := range group.Spec.Sites {
			has := in
			if site.Name == "c" {
				want = scope.SpecHash(render.Deployment(in, site))
				has.Install.SidecarImage = tt.sidecar
			}
			d := render.Deployment(has, site)
			s.Deployments[site.Name] = d
			s.Pods[site.Name] = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationSpecHash: scope.SpecHash(d)}, CreationTimestamp: metav1.NewTime(s.Now.Add(-time.Hour))},
			}
		}
		if tt.typo {
			group.Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{Name: "nightly", Encryption: &v1alpha1.BackupEncryption{Recipients: []string{"age1typo"}}}}}
		}
		if tt.noPod {
			delete(s.Pods, "c")
			s.Deployments["c"].Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(s.Now), LastUpdateTime: metav1.NewTime(s.Now),
			}}
		}
		if tt.missing {
			delete(s.Deployments, "c")
			s.Refused = map[string]bool{"c": tt.refused}
		}
		group.Status.Upgrade = tt.kept(want)
		s.Upgrade = scope.NewUpgrade(group, ours, tt.turn)
		if got := (&Encryption{}).updateInFlight(s, keyring.Group{Name: group.Name}); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
