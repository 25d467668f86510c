// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// I25: where the order changes while a pod loads, and that pod cannot be replaced at once, what it has loaded completes nothing: status would
// name the new order, and the group would open with the data of the former one.
func TestALoadOfTheFormerOrderCompletesNothingI25(t *testing.T) {
	for name, change := range map[string]scopetest.Option{
		"another backup": func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.InitFromBackup.Backup = "monday" },
		"another point": func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.InitFromBackup.PointInTime = &v1alpha1.PointInTime{GTID: "u:8"}
		},
		"another place": func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.InitFromBackup.Storage.S3.Bucket = "others" },
	} {
		t.Run(name, func(t *testing.T) {
			w := loadingWorld(t, nil)
			w.r.Proven = v1alpha1.Proven{PITR: true}
			w.change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: time.Now().Add(time.Hour).Format(time.RFC3339)}
				change(g)
			})
			before := w.deployments()
			w.starts("a", endedWith(0, wasLoaded), endedWith(0, ""))
			w.reconcileOften()
			if st := w.restoring(); st.Phase != v1alpha1.RestorePending || len(w.sites()) != 1 || !w.group().AwaitsRestore() {
				t.Errorf("I25: %+v, made %v", st, w.sites())
			}
			if c := w.condition(v1alpha1.ConditionRestoreReady); c.Status != metav1.ConditionFalse {
				t.Errorf("I25: %+v", c)
			}
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations = nil })
			w.reconcileOften()
			if sites := replaced(before, w.deployments()); len(sites) != 1 {
				t.Fatalf("%v replaced after the pause", sites)
			}
			loaded := wasLoaded
			if want := w.group().Spec.InitFromBackup.Backup; want != "" {
				loaded = strings.Replace(loaded, "orders-nightly-1", want, 1)
			}
			w.starts("a", endedWith(0, loaded), endedWith(0, ""))
			w.reconcileOften()
			if st := w.restoring(); st.Phase != v1alpha1.RestoreCompleted || len(w.sites()) != 3 {
				t.Errorf("%+v, made %v", st, w.sites())
			}
		})
	}
}

// I25: a load that begins again after a restore was complete is told, and its pod is left alone, as in the first load.
func TestALoadThatBeginsAgainIsLeftAloneI25(t *testing.T) {
	w := restoredWorld(t)
	if st := w.restoring(); st.Phase != v1alpha1.RestoreCompleted || len(w.sites()) != 3 {
		t.Fatalf("%+v, made %v", st, w.sites())
	}
	w.facts.Set("a", scope.SiteFacts{})
	w.starts("a", corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-time.Hour))}}, corev1.ContainerState{})
	w.isUnavailable("a")
	before := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = map[string]string{"max_connections": "77"} })
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) > 0 {
		t.Errorf("%v replaced while a backup is loaded", sites)
	}
	if st, c := w.restoring(), w.condition(v1alpha1.ConditionRestoreReady); st.Phase != v1alpha1.RestoreLoading || c.Status != metav1.ConditionFalse || !w.group().AwaitsRestore() {
		t.Errorf("I25: %+v, %+v", st, c)
	}
	w.starts("a", endedWith(0, wasLoaded), endedWith(0, ""))
	w.reconcileOften()
	if st, c := w.restoring(), w.condition(v1alpha1.ConditionRestoreReady); st.Phase != v1alpha1.RestoreCompleted || c.Status != metav1.ConditionTrue {
		t.Errorf("%+v, %+v", st, c)
	}
}

// The other sites exist when a restore begins again: what is known of their keyrings stays.
func TestTheKeyringsOfOthersOutliveASecondLoad(t *testing.T) {
	w := restoringWorld(t, scopetest.Group(fromBackup, scopetest.WithEncryption))
	w.r.encryption.Escrow, w.r.encryption.EscrowURL, w.r.Install.EscrowURL = vault{w.c}, "https://operator:8443", "https://operator:8443"
	w.reconcileOften()
	w.starts("a", endedWith(0, wasLoaded), endedWith(0, ""))
	w.reconcileOften()
	if st := w.group().Status.EncryptionAtRest.Sites; len(st) != 3 || len(w.sites()) != 3 {
		t.Fatalf("%+v, made %v", st, w.sites())
	}
	w.starts("a", endedWith(0, wasLoaded), endedWith(1, wire.MarkRestoreLost))
	w.reconcileOften()
	if st := w.restoring(); st.Phase != v1alpha1.RestorePending || w.said.Count(v1alpha1.ReasonRestoreAgain) != 1 {
		t.Errorf("I25: %+v, said %v", st, w.said.List)
	}
	if st := w.group().Status.EncryptionAtRest.Sites; len(st) != 3 {
		t.Errorf("keyrings %+v", st)
	}
}

// I25: what is ordered once a restore is complete, and before the group was open, is not taken for done: neither another backup nor another place of the same
// name. While the group is paused, status reports no progress. When the earlier order is back, it counts as done.
func TestAnotherOrderAfterTheRestoreOpensNothingI25(t *testing.T) {
	for name, change := range map[string]scopetest.Option{
		"another backup": func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.InitFromBackup.Backup = "monday" },
		"another server": func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.InitFromBackup.Storage.S3.Endpoint = "https://other" },
	} {
		t.Run(name, func(t *testing.T) {
			w := restoredWorld(t)
			w.starts("a", endedWith(0, wasLoaded), endedWith(0, ""))
			before, ordered := w.deployments(), w.group().Spec.InitFromBackup.DeepCopy()
			w.change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: time.Now().Add(time.Hour).Format(time.RFC3339)}
				change(g)
			})
			w.reconcileOften()
			if st := w.restoring(); st.Phase != v1alpha1.RestorePending || !strings.Contains(st.Message, "paused until") || !w.group().AwaitsRestore() {
				t.Errorf("I25: %+v", st)
			}
			if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonPaused {
				t.Errorf("%+v", c)
			}
			if sites := replaced(before, w.deployments()); len(sites) > 0 {
				t.Errorf("%v replaced in a pause", sites)
			}
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations = nil })
			w.reconcileOften()
			if sites := replaced(before, w.deployments()); len(sites) != 1 {
				t.Errorf("%v replaced after the pause", sites)
			}
			w.starts("a", endedWith(14, `{"reason":"TargetNotEmpty","message":"the volume was given another","seconds":1}`), corev1.ContainerState{})
			w.reconcileOften()
			if st := w.restoring(); st.Phase != v1alpha1.RestoreFailed || st.Reason != v1alpha1.ReasonTargetNotEmpty || !w.group().AwaitsRestore() {
				t.Errorf("I25: %+v", st)
			}
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.InitFromBackup = ordered })
			w.reconcileOften()
			w.starts("a", endedWith(0, wasLoaded), endedWith(0, ""))
			w.reconcileOften()
			if st := w.restoring(); st.Phase != v1alpha1.RestoreCompleted || w.group().RestoredSite() != "a" {
				t.Errorf("%+v", st)
			}
		})
	}
}
