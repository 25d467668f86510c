// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// backedUp is a group with backups in which nothing is wrong.
func backedUp() (World, []runtime.Object) {
	w, objects := well()
	at := func(d time.Duration) *metav1.Time { t := metav1.NewTime(noon.Add(d)); return &t }
	w.Group.Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{
		Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "b", SecretName: "keys", CASecretName: "ca"}},
		Encryption: &v1alpha1.BackupEncryption{Recipients: []string{"age1x"}, IdentitySecretName: "identity"}, Schedule: &v1alpha1.BackupSchedule{Cron: "@daily"},
	}}}
	w.Group.Status.Backup = &v1alpha1.BackupStatus{Profiles: []v1alpha1.BackupProfileStatus{{Name: "nightly", Backups: 3, LastSuccess: at(-10 * time.Hour), VerifiedAt: at(-34 * time.Hour)}}}
	w.Group.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBackupReady, Status: metav1.ConditionTrue, Reason: "AsExpected"}}
	w.BackupSecrets = map[string]error{"keys": nil, "ca": nil, "identity": nil}
	return w, objects
}

// archived gives a group an archive in which nothing is wrong.
func archived(g *v1alpha1.MysqlFailoverGroup) {
	latest := metav1.NewTime(noon.Add(-5 * time.Second))
	g.Spec.Backup.PITR = &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"}
	g.Status.Backup.PITR = &v1alpha1.PITRStatus{Site: "paris", Latest: &latest}
}

func TestBackupsAreWell(t *testing.T) {
	w, objects := backedUp()
	w.Kube = fake.NewClientset(objects...)
	found := backupStore(t.Context(), w)
	if len(found) != 1 || found[0].Level != OK || !strings.Contains(found[0].Message, "the newest is 10h old, and the last verification passed 34h ago") {
		t.Errorf("%+v", found)
	}
	w.Group.Spec.Backup, w.Group.Status.Backup = nil, nil
	if found := backupStore(t.Context(), w); found != nil {
		t.Errorf("there are none: %+v", found)
	}
}

// TestBackupFindings spoils one thing at a time: that, and nothing else, is found.
func TestBackupFindings(t *testing.T) {
	of := func(with func(*v1alpha1.MysqlFailoverGroup)) func(*World) { return func(w *World) { with(w.Group) } }
	condition := func(kind string) func(*World) {
		return of(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: "Because", Message: "the operator's words"}}
		})
	}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "x")
	volume := of(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Backup.Profiles[0].Storage = v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "backups"}}
	})
	restoring := func(phase v1alpha1.RestorePhase) func(*World) {
		return of(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{}
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: phase, Progress: 42, Reason: "WrongIdentity", Message: "no key"}
		})
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backups"}}
	for name, tc := range map[string]struct {
		spoil  func(*World)
		object runtime.Object
		level  Level
		says   []string
		remedy string
	}{
		"NotReady":  {spoil: condition(v1alpha1.ConditionBackupReady), level: Fail, says: []string{"not ready: the operator's words [Because]"}, remedy: "kubectl mfg backup list orders -n shop"},
		"NotProven": {spoil: condition(v1alpha1.ConditionBackupVerified), level: Fail, says: []string{"not verified: the operator's words [Because]"}, remedy: "kubectl mfg backup list orders -n shop"},
		"NoDelete": {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) {
			p := &g.Status.Backup.Profiles[0]
			p.Reason, p.Message = "NoDeleteRight", "old backups stay"
		}), level: Warn, says: []string{"profile nightly: old backups stay [NoDeleteRight]"}, remedy: "kubectl mfg backup list"},
		"InTheClear": {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
			g.Spec.Backup.Profiles[0].Encryption = nil
		}), level: Warn, says: []string{"anyone who can read s3://b can read the data"}, remedy: "kubectl mfg backup keygen"},
		"OnAVolume":  {spoil: volume, object: claim, level: Warn, says: []string{"are lost with it"}, remedy: "outside of this cluster"},
		"NoVolume":   {spoil: volume, level: Fail, says: []string{"are lost with it", "no PersistentVolumeClaim backups"}, remedy: "make it"},
		"NoSecret":   {spoil: func(w *World) { w.BackupSecrets["keys"] = missing }, level: Fail, says: []string{"no Secret keys (profile nightly: credentials of the storage)"}, remedy: "docs/backups.md"},
		"NoCA":       {spoil: func(w *World) { w.BackupSecrets["ca"] = missing }, level: Fail, says: []string{"no Secret ca (profile nightly: certificates"}, remedy: "make it"},
		"NoIdentity": {spoil: func(w *World) { w.BackupSecrets["identity"] = missing }, level: Fail, says: []string{"no Secret identity (profile nightly: the age identity"}, remedy: "make it"},
		"MayNotLook": {spoil: func(w *World) {
			w.BackupSecrets["keys"] = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "keys", errors.New("no"))
		}, level: Unknown, says: []string{"you may not get secrets/keys"}, remedy: "kubectl auth can-i get secrets/keys -n shop"},
		"ArchiveBad": {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) {
			archived(g)
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPITRReady, Status: metav1.ConditionFalse, Reason: "PITRFailing", Message: "the bucket is full"})
		}), level: Fail, says: []string{"the archive of binary logs is not as it should be: the bucket is full [PITRFailing]"}, remedy: "kubectl mfg backup timeline orders -n shop"},
		"ArchiveGap": {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) { archived(g); g.Status.Backup.PITR.GapCount = 2 }), level: Warn, says: []string{"lacks transactions (2 gaps)"}, remedy: "kubectl mfg backup create orders -n shop"},
		"ArchiveKeepsAll": {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) {
			archived(g)
			g.Status.Backup.PITR.PruneMessage = "remove x: NoDeleteRight"
		}), level: Warn, says: []string{"nothing is removed from the archive of binary logs, which grows: remove x: NoDeleteRight"}, remedy: "the right to delete"},
		"ArchiveLate": {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) {
			archived(g)
			late := metav1.NewTime(noon.Add(-10 * time.Minute))
			g.Status.Backup.PITR.Latest = &late
		}), level: Warn, says: []string{"the latest moment that can be brought back is 10m ago, and should be 3m0s at most"}, remedy: "kubectl mfg backup timeline"},
		"ArchiveNothing": {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) { archived(g); g.Status.Backup.PITR = nil }), level: Warn, says: []string{"nothing is archived yet"}, remedy: "kubectl mfg backup timeline"},
		"ArchiveSecret": {spoil: func(w *World) {
			archived(w.Group)
			w.Group.Spec.Backup.PITR.SecretName = "narrow"
			w.BackupSecrets["narrow"] = missing
		}, level: Fail, says: []string{"no Secret narrow (backup.pitr: credentials of the storage for the pods of MySQL)"}, remedy: "docs/backups.md"},
		"Archive":     {spoil: of(archived), level: OK, says: []string{"and any moment until 5s ago can be brought back"}, remedy: ""},
		"NoSchedule":  {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup.Profiles[0].Schedule = nil }), level: Warn, says: []string{"no profile has a schedule"}, remedy: "schedule.cron"},
		"Suspended":   {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup.Profiles[0].Schedule.Suspend = true }), level: Warn, says: []string{"the schedule of nightly is suspended"}, remedy: "schedule.suspend"},
		"NoneYet":     {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Backup = nil }), level: Warn, says: []string{"there is no backup yet"}, remedy: "kubectl mfg backup create orders -n shop"},
		"NeverProven": {spoil: of(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Backup.Profiles[0].VerifiedAt = nil }), level: Warn, says: []string{"no backup was ever restored"}, remedy: "kubectl mfg backup verify orders -n shop"},
		"Restoring":   {spoil: restoring(v1alpha1.RestoreLoading), level: Warn, says: []string{"is being restored from shop/orders, and does not serve yet"}, remedy: "kubectl mfg status orders -n shop -w"},
		"NoRestore":   {spoil: restoring(v1alpha1.RestoreFailed), level: Fail, says: []string{"the restore from shop/orders does not go on: no key [WrongIdentity]"}, remedy: "kubectl mfg events orders -n shop --warnings"},
	} {
		t.Run(name, func(t *testing.T) {
			w, objects := backedUp()
			tc.spoil(&w)
			if tc.object != nil {
				objects = append(objects, tc.object)
			}
			w.Kube = fake.NewClientset(objects...)
			found := backupStore(t.Context(), w)
			if len(found) != len(tc.says) {
				t.Fatalf("%+v", found)
			}
			for i, want := range tc.says {
				if !strings.Contains(found[i].Message, want) {
					t.Errorf("lacks %q: %+v", want, found[i])
				}
			}
			if last := found[len(found)-1]; last.Level != tc.level || !strings.Contains(last.Remedy, tc.remedy) {
				t.Errorf("%+v", last)
			}
		})
	}
}

// TestBackupSecretNames: each kind of storage names its Secret.
func TestBackupSecretNames(t *testing.T) {
	for want, s := range map[string]v1alpha1.BackupStorage{
		"g": {GCS: &v1alpha1.GCSStorage{Bucket: "b", SecretName: "g"}}, "a": {Azure: &v1alpha1.AzureStorage{Container: "c", SecretName: "a"}},
	} {
		g := &v1alpha1.MysqlFailoverGroup{}
		g.Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{Name: "p", Storage: s}}}
		if got := backupSecretNames(g); len(got) != 1 || got[want] == "" {
			t.Errorf("%s: %v", want, got)
		}
	}
}
