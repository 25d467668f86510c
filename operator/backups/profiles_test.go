// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// withProfiles is a group with nightly profiles of these names.
func withProfiles(names ...string) scopetest.Option {
	return func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Backup = &v1alpha1.BackupSpec{}
		for _, name := range names {
			p := v1alpha1.BackupProfile{Name: name, Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: name, SecretName: "s3"}}}
			nightly(&p)
			g.Spec.Backup.Profiles = append(g.Spec.Backup.Profiles, p)
		}
	}
}

func of(profile string) func(*v1alpha1.MysqlBackup) {
	return func(mb *v1alpha1.MysqlBackup) { mb.Spec.Profile = profile }
}

// The API server refuses the Jobs of a profile, or its backup of a time, for days: the others have their schedules, their retention and their
// status, and the group has its conditions.
func TestAProfileThatFailsKeepsNothingFromTheOthers(t *testing.T) {
	for refused, made := range map[string]bool{"sweep-orders-alpha": true, "orders-alpha-20261124-0200": false} {
		t.Run(refused, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfiles("alpha", "beta"), func(g *v1alpha1.MysqlFailoverGroup) {
				g.Spec.Backup.Profiles[1].Retention = &v1alpha1.BackupRetention{Count: 1, MinCount: 1}
			}), order("a1", completedAt(began.Add(-48*time.Hour)), of("alpha")), order("b1", completedAt(began.Add(-48*time.Hour)), of("beta")),
				order("b2", completedAt(began.Add(-24*time.Hour)), of("beta")))
			w.refused = map[string]error{refused: errAway}
			again := func() error {
				_, err := w.b.ReconcileGroup(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
				return err
			}
			_ = again()
			w.now = time.Date(2026, 11, 24, 2, 15, 0, 0, time.UTC) // whatever the spread is
			if err := again(); err == nil || !strings.Contains(err.Error(), "profile alpha") {
				t.Errorf("nobody is told of it: %v", err)
			}
			w.get("orders-beta-20261124-0200")
			if w.gone("orders-alpha-20261124-0200") == made || w.get("b1").DeletionTimestamp == nil {
				t.Error("something else of the group fails with it")
			}
			g := &v1alpha1.MysqlFailoverGroup{}
			if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
				t.Fatal(err)
			}
			due := metav1.NewTime(time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC))
			for _, p := range g.Status.Backup.Profiles {
				if done := p.Name == "beta" || made; p.LastScheduled == nil || p.LastScheduled.Equal(&due) != done || p.Next == nil {
					t.Errorf("status: %+v", p)
				}
			}
			if len(g.Status.Backup.Profiles) != 2 || meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionBackupReady) == nil {
				t.Errorf("status: %+v", g.Status)
			}
		})
	}
}

// A sweep that is refused is tried again every few seconds, and is none that runs.
func TestASweepThatIsRefusedKeepsNoTurn(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfiles("alpha", "beta")), order("a1", completedAt(began), of("alpha")), order("b1", completedAt(began), of("beta")))
	w.b = w.shell(1)
	w.refused = map[string]error{"sweep-orders-alpha": errAway}
	_, _ = w.b.ReconcileGroup(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
	if w.jobOf("sweep-orders-beta") == nil {
		t.Error("no other sweep gets a turn")
	}
}
