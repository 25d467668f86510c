// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// A group that has not chosen its backup holds all of them: status says which group that is, and one that nobody looks after ends to hold them.
func TestARestoreHoldsTheRetentionForAWhile(t *testing.T) {
	ago := func(d time.Duration) *metav1.Time { return timeOf(began.Add(-d)) }
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MysqlFailoverGroup)
		holds  bool
	}{
		"made a moment ago": {nil, true},
		"forgotten": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.CreationTimestamp = *ago(restoreHolds)
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreFailed, StartedAt: ago(restoreHolds)}
		}, false},
		"begun a moment ago": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.CreationTimestamp = *ago(2 * restoreHolds)
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreFailed, StartedAt: ago(time.Hour)}
		}, true},
		"loading for long": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.CreationTimestamp = *ago(2 * restoreHolds)
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreLoading, StartedAt: ago(2 * restoreHolds)}
		}, true},
		"done, and its data may still go with the memory of its pod (I25)": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreCompleted}
		}, true},
		"done, and open": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Epoch, g.Status.Restore = 1, &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreCompleted}
		}, false},
		"open for long":    {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Epoch = 1 }, false},
		"of another group": {func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.InitFromBackup.From.Group = "billing" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			drill := scopetest.Group()
			drill.Namespace, drill.Name, drill.UID, drill.CreationTimestamp = "drills", "copy", "copy-uid", *ago(time.Minute)
			drill.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{From: &v1alpha1.RestoreFrom{Namespace: scopetest.Key.Namespace, Group: scopetest.Key.Name}}
			if tc.change != nil {
				tc.change(drill)
			}
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
				p.Retention = &v1alpha1.BackupRetention{Count: 1, MinCount: 1}
			})), drill)
			for i := range 3 {
				w.put(order(fmt.Sprintf("b%d", i), completedAt(began.Add(time.Duration(i-10)*time.Hour))))
			}
			w.group()
			st := w.status()
			if got := w.get("b0").DeletionTimestamp == nil; got != tc.holds {
				t.Errorf("b0 stays: %t, %+v", got, st)
			}
			if (st.Reason == v1alpha1.ReasonRetentionHeld) != tc.holds || tc.holds != strings.Contains(st.Message, "expired backups are kept (2), because group drills/copy") {
				t.Errorf("%s: %q", st.Reason, st.Message)
			}
			if c := w.condition(v1alpha1.ConditionBackupReady); c.Status != metav1.ConditionTrue {
				t.Errorf("backups are made all the same: %+v", c)
			}
		})
	}
}

// Of several that hold, always the same is named: status changes only if something does.
func TestWhichRestoreIsNamed(t *testing.T) {
	r := restored{"": {Namespace: "z", Name: "late"}, "b1": {Namespace: "a", Name: "early"}}
	left, held := r.spare([]string{"b0", "b1", "b2"})
	if len(left) != 0 || !strings.Contains(held, "expired backups are kept (3), because group a/early") {
		t.Errorf("%v go; %s", left, held)
	}
	delete(r, "")
	if left, held = r.spare([]string{"b0", "b1"}); len(left) != 1 || left[0] != "b0" || !strings.Contains(held, "expired backups are kept (1)") {
		t.Errorf("%v go; %s", left, held)
	}
}
