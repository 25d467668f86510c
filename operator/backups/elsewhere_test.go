// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// inBucket is the storage of the profile in these tests.
func inBucket(change func(*v1alpha1.S3Storage)) v1alpha1.BackupStorage {
	s := &v1alpha1.S3Storage{Bucket: "bucket", SecretName: "s3"}
	if change != nil {
		change(s)
	}
	return v1alpha1.BackupStorage{S3: s}
}

func onVolume(claim, sub string) v1alpha1.BackupStorage {
	return v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: claim, SubPath: sub}}
}

// madeAgain is a profile that was made again: the backup was made with the former storage, and the profile has the present one.
type madeAgain struct {
	former, present v1alpha1.BackupStorage
	// older is true for a backup of an operator that wrote no digest.
	older     bool
	elsewhere bool
}

func profilesMadeAgain() map[string]madeAgain {
	old := inBucket(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://old:9000" })
	other := inBucket(func(s *v1alpha1.S3Storage) { s.Bucket = "other" })
	return map[string]madeAgain{
		"another bucket":                   {former: other, present: inBucket(nil), elsewhere: true},
		"another bucket, and no digest":    {former: other, present: inBucket(nil), older: true, elsewhere: true},
		"another server":                   {former: old, present: inBucket(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://new:9000" }), elsewhere: true},
		"Amazon's instead":                 {former: old, present: inBucket(nil), elsewhere: true},
		"another server, and no digest":    {former: old, present: inBucket(nil), older: true},
		"another volume":                   {former: onVolume("old", "a"), present: onVolume("new", "a"), elsewhere: true},
		"another folder of the volume":     {former: onVolume("nfs", ""), present: onVolume("nfs", "a"), elsewhere: true},
		"another folder, and no digest":    {former: onVolume("nfs", ""), present: onVolume("nfs", "a"), older: true},
		"the same volume":                  {former: onVolume("nfs", "a"), present: onVolume("nfs", "a")},
		"other credentials, other region":  {former: inBucket(func(s *v1alpha1.S3Storage) { s.Region, s.SecretName = "eu-west-1", "former" }), present: inBucket(nil)},
		"the same bucket in the same form": {former: inBucket(nil), present: inBucket(nil)},
	}
}

// world has the backup from before.
func (tc madeAgain) world(t *testing.T, change ...func(*v1alpha1.MysqlBackup)) *world {
	t.Helper()
	profile := withProfile(func(p *v1alpha1.BackupProfile) { p.Storage = tc.present })
	before := func(mb *v1alpha1.MysqlBackup) {
		place := placeOf(&v1alpha1.BackupProfile{Storage: tc.former}, "shop", "orders")
		mb.Status.Location, mb.Status.StorageDigest = place.Location, place.Digest
		if tc.older {
			mb.Status.StorageDigest = ""
		}
	}
	all := append([]func(*v1alpha1.MysqlBackup){completedAt(began), before}, change...)
	return newWorld(t, scopetest.Group(scopetest.Running, profile), order("monday", all...))
}

// What lies in another storage is neither verified nor removed there, and the group says so.
func TestWhatLiesInAnotherStorageIsLeftAlone(t *testing.T) {
	for name, tc := range profilesMadeAgain() {
		t.Run(name, func(t *testing.T) {
			w := tc.world(t, func(mb *v1alpha1.MysqlBackup) {
				mb.Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: "now"}
			})
			w.group()
			c := w.condition(v1alpha1.ConditionBackupReady)
			if told := c.Status == metav1.ConditionFalse && c.Reason == string(v1alpha1.ReasonBackupElsewhere); told != tc.elsewhere {
				t.Errorf("condition %+v", c)
			}
			w.step("monday")
			if verified := w.jobOf(v1alpha1.VerifyJob("monday")) != nil; verified == tc.elsewhere {
				t.Errorf("verified there: %t", verified)
			}
			if told := w.said.Count(v1alpha1.ReasonBackupElsewhere) == 1; told != tc.elsewhere {
				t.Errorf("told: %v", w.said.List)
			}
		})
	}
}

func TestWhatLiesInAnotherStorageStaysThere(t *testing.T) {
	for name, tc := range profilesMadeAgain() {
		t.Run(name, func(t *testing.T) {
			w := tc.world(t, deleted)
			w.step("monday")
			w.step("monday")
			if stays := w.said.Count(v1alpha1.ReasonBackupArtifactKept) == 1; stays != tc.elsewhere {
				t.Errorf("told: %v", w.said.List)
			}
			if removed := w.jobOf("delete-monday") != nil; removed == tc.elsewhere {
				t.Errorf("removed there: %t", removed)
			}
		})
	}
}

// Retention counts and removes what lies in the storage of the profile alone.
func TestRetentionPassesOverAnotherStorage(t *testing.T) {
	for name, tc := range profilesMadeAgain() {
		p := v1alpha1.BackupProfile{Name: "nightly", Storage: tc.present}
		w := tc.world(t)
		g := &groupLook{group: scopetest.Group(), key: scopetest.Key, of: map[string][]v1alpha1.MysqlBackup{"nightly": {*w.get("monday")}}}
		if all := g.artifacts(&p); len(all) != 1 || all[0].Elsewhere != tc.elsewhere {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// Attempt 1 may have committed its manifest before its node was lost. Attempt 2 would be stored elsewhere, and nothing would name the first any more.
func TestNoOtherAttemptIsMadeInAnotherStorage(t *testing.T) {
	for name, tc := range profilesMadeAgain() {
		w := tc.world(t, func(mb *v1alpha1.MysqlBackup) {
			location, digest := mb.Status.Location, mb.Status.StorageDigest
			running(mb)
			mb.Status.Location, mb.Status.StorageDigest, mb.Status.FinishedAt = location, digest, nil
		})
		before := w.get("monday").Status
		w.now = began.Add(30 * time.Minute)
		for range 3 {
			w.step("monday")
		}
		st := w.get("monday").Status
		if failed := st.Phase == v1alpha1.BackupFailed && st.Reason == v1alpha1.ReasonBackupStorageChanged; failed != tc.elsewhere {
			t.Errorf("%s: %+v", name, st)
		}
		if again := w.jobOf("backup-monday") != nil; again == tc.elsewhere {
			t.Errorf("%s: another attempt %t", name, again)
		}
		if tc.elsewhere && (st.Location != before.Location || st.StorageDigest != before.StorageDigest || !strings.Contains(st.Message, before.Location)) {
			t.Errorf("%s: where attempt 1 stored is forgotten: %+v", name, st)
		}
	}
}
