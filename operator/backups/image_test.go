// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// siteWith is the Deployment of a site that has an image.
func siteWith(site, image string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: v1alpha1.SiteName(scopetest.Key.Name, site)},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "other", Image: "other:1"}, {Name: render.ContainerMySQL, Image: image}}}}},
	}
}

// The pods of backups have the credentials of the storage: an image that no site may run gets them neither.
func TestJobsRunOnlyAllowedImages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		image  string
		sites  []client.Object
		want   string
	}{
		"allowed":          {"what is allowed runs", "mysql:9.7", []client.Object{siteWith("c", "mysql:9.6")}, "mysql:9.7"},
		"not allowed":      {"the site that is copied has the version that fits", "evil/mysql:9.7", []client.Object{siteWith("a", "mysql:9.5"), siteWith("c", "mysql:9.6")}, "mysql:9.6"},
		"of another site":  {"any site of the group will do", "evil/mysql:9.7", []client.Object{siteWith("b", "mysql:9.6")}, "mysql:9.6"},
		"older than limit": {"a refusal takes nothing away from a running group", "evil/mysql:9.7", []client.Object{siteWith("c", "evil/mysql:9.6")}, "evil/mysql:9.6"},
		"no site":          {"there is nothing that may run", "evil/mysql:9.7", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			group := scopetest.Group(scopetest.Running, withProfile(nil), func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = tc.image })
			w := newWorld(t, group, tc.sites...)
			w.b.Limits = limits.Limits{Images: []string{"mysql"}}
			k := &look{mb: order("monday"), group: group, profile: &group.Spec.Backup.Profiles[0]}
			of := k.job(w.b.Install)
			of.Site = siteOf(group, "c")
			got, err := w.b.allowed(t.Context(), of)
			switch {
			case tc.want == "" && (err == nil || !strings.Contains(err.Error(), "allowedImages")):
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (err != nil || got.Group.Spec.Image != tc.want):
				t.Errorf("%s: %s, want %s (%v)", tc.reason, got.Group.Spec.Image, tc.want, err)
			case group.Spec.Image != tc.image:
				t.Error("it changed what others see of the group")
			}
		})
	}
}

// Every Job comes by that check.
func TestEveryJobIsChecked(t *testing.T) {
	evil := func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "evil/mysql:9.7" }
	verify := func(mb *v1alpha1.MysqlBackup) {
		mb.Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: "now"}
	}
	remove := func(mb *v1alpha1.MysqlBackup) { mb.DeletionTimestamp = &metav1.Time{Time: began} }
	for job, tc := range map[string]struct {
		mb    *v1alpha1.MysqlBackup
		group bool
	}{
		v1alpha1.BackupJob("monday"):           {order("monday"), false},
		v1alpha1.VerifyJob("monday"):           {order("monday", completedAt(began), verify), false},
		v1alpha1.DeleteJob("monday"):           {order("monday", completedAt(began), remove), false},
		v1alpha1.SweepJob("orders", "nightly"): {order("monday", completedAt(began)), true},
	} {
		t.Run(job, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil), evil), tc.mb, siteWith("c", "mysql:9.6"))
			w.b.Limits = limits.Limits{Images: []string{"mysql"}}
			w.now = began.Add(time.Minute)
			for range 3 {
				if tc.group {
					w.group()
				} else {
					w.step("monday")
				}
			}
			made := w.jobOf(job)
			if made == nil {
				t.Fatal("no Job was made")
			}
			if image := made.Spec.Template.Spec.Containers[0].Image; image != "mysql:9.6" {
				t.Errorf("it runs %s", image)
			}
		})
	}
}
