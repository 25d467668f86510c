// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// The password of backups is there for groups that have a profile, also for one that is given its first; it goes with that of clones, and is
// put back if somebody changes it.
func TestThePasswordOfBackups(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	secret := func() *corev1.Secret {
		t.Helper()
		s := &corev1.Secret{}
		w.get(s, v1alpha1.AccountsSecret("orders"))
		return s
	}
	w.reconcile()
	if got := secret().Data[v1alpha1.AccountBackup]; got != nil {
		t.Error("a group without profiles has a password for backups")
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{Name: "nightly", Storage: v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "v"}}}}}
	})
	w.reconcile()
	s := secret()
	want := mysql.BackupPassword(string(s.Data[v1alpha1.AccountClone]))
	if string(s.Data[v1alpha1.AccountBackup]) != want {
		t.Error("the password is not that which the sites make the account with")
	}
	if c := w.condition(v1alpha1.ConditionUnbuiltFeatures); c.Type != "" {
		t.Errorf("profiles are built: %+v", c)
	}
	s.Data[v1alpha1.AccountBackup] = []byte("of a person")
	w.must(w.c.Update(w.ctx, s))
	w.reconcile() // labels and owner of what somebody changed are applied again, and the Secret has another version then
	w.reconcile()
	if string(secret().Data[v1alpha1.AccountBackup]) != want {
		t.Error("a password that no site takes stays")
	}
	s = secret()
	s.Data[v1alpha1.AccountClone+v1alpha1.PasswordKnown] = []byte("another")
	s.Data[v1alpha1.AccountClone] = []byte("another")
	w.must(w.c.Update(w.ctx, s))
	w.reconcile()
	w.reconcile()
	if string(secret().Data[v1alpha1.AccountBackup]) != mysql.BackupPassword("another") {
		t.Error("it does not follow that of clones")
	}
}
