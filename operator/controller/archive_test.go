// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// As long as it is not proven the condition names the archive, and it is made all the same; once it is, nothing is said.
func TestAnArchiveIsMadeBeforeItIsProven(t *testing.T) {
	for _, proven := range []bool{false, true} {
		w := restoringWorld(t, scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.Backup = &v1alpha1.BackupSpec{
				Profiles: []v1alpha1.BackupProfile{{Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", SecretName: "keys"}}}},
				PITR:     &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"},
			}
		}))
		w.r.Proven = v1alpha1.Proven{PITR: proven}
		w.reconcile()
		w.reconcile()
		var d appsv1.Deployment
		w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, "a"))
		if !slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == render.ContainerArchiver }) {
			t.Errorf("proven: %t: nothing archives", proven)
		}
		if c := w.condition(v1alpha1.ConditionUnbuiltFeatures); (c.Type == "") != proven || strings.Contains(c.Message, "spec.backup.pitr") == proven {
			t.Errorf("proven: %t: %+v", proven, c)
		}
	}
}

// A recipient that is none is refused before a pod is given it: the archiver, and so the pod of MySQL, stays as it is.
func TestAMalformedRecipientReachesNoPod(t *testing.T) {
	const good, typo = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8q"
	w := restoringWorld(t, scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Backup = &v1alpha1.BackupSpec{
			Profiles: []v1alpha1.BackupProfile{{Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", SecretName: "keys"}},
				Encryption: &v1alpha1.BackupEncryption{Recipients: []string{good}}}},
			PITR: &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"},
		}
	}))
	w.reconcile()
	w.reconcile()
	template := func() corev1.PodTemplateSpec {
		var d appsv1.Deployment
		w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, "a"))
		return d.Spec.Template
	}
	before := template()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup.Profiles[0].Encryption.Recipients = []string{typo} })
	w.reconcile()
	w.reconcile()
	if diff := cmp.Diff(before, template()); diff != "" {
		t.Errorf("the pod is changed (-before +now): %s", diff)
	}
	if c := w.condition(v1alpha1.ConditionSpecRefused); c.Reason != v1alpha1.ReasonRecipientMalformed || !strings.Contains(c.Message, "nightly (recipients[0])") {
		t.Errorf("condition %+v", c)
	}
	if n := w.said.Count(v1alpha1.ReasonRecipientMalformed); n != 1 {
		t.Errorf("told %d times", n)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup.Profiles[0].Encryption.Recipients = []string{good} })
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionSpecRefused); c.Type != "" {
		t.Errorf("condition %+v", c)
	}
}
