// SPDX-License-Identifier: Apache-2.0

package backupjob_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/backupjob"
	"github.com/mysql-mfg/mfg/operator/render"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

// backupJob is that of a plain group with a bucket.
func backupJob(change ...func(*backupjob.Job)) backupjob.Job {
	group := &v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "11111111-2222-3333-4444-555555555555"},
		Spec: v1alpha1.MysqlFailoverGroupSpec{
			Image: "mysql:9.7", ImagePullPolicy: corev1.PullIfNotPresent,
			Sites: []v1alpha1.Site{{Name: "paris", Storage: v1alpha1.StorageSpec{Size: resource.MustParse("20Gi")}}},
		},
	}
	b := backupjob.Job{
		Group: group, Account: "mfg_backup", Site: group.Spec.Sites[0], Epoch: 7, Attempt: 2,
		Profile: v1alpha1.BackupProfile{Name: "nightly", Method: v1alpha1.BackupLogical, Timeout: metav1.Duration{Duration: time.Hour}, Storage: v1alpha1.BackupStorage{
			S3: &v1alpha1.S3Storage{Bucket: "bucket", Prefix: "mysql", Endpoint: "https://s3.example.org", SecretName: "s3", CASecretName: "s3-ca"},
		}},
		Backup: &v1alpha1.MysqlBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday", UID: "99999999-2222-3333-4444-555555555555"}},
	}
	b.Install = render.Install{BackupImage: "example.org/mfg/backup:v1", BackupPullPolicy: corev1.PullIfNotPresent}
	for _, c := range change {
		c(&b)
	}
	return b
}

// The active site is asked for its events, unless it is the one that is copied.
func TestTheActiveSiteIsAsked(t *testing.T) {
	for active, want := range map[string]string{"": "", "paris": "", "rome": "mysql-orders-rome.shop.svc"} {
		job := backupJob(func(b *backupjob.Job) { b.Active = active })
		var c wire.BackupConfig
		if err := json.Unmarshal([]byte(job.Make().Spec.Template.Spec.Containers[0].Env[0].Value), &c); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(c.Source.ActiveHost, want) || (want == "") != (c.Source.ActiveHost == "") || c.Source.ActiveHost == c.Source.Host {
			t.Errorf("active %q: %q is asked", active, c.Source.ActiveHost)
		}
	}
}

// I23: profiles share a place, so the sweep of one takes nothing that an attempt of another may have stored.
func TestASweepLeavesTheAttemptsOfAllProfilesI23(t *testing.T) {
	job := backupJob(func(b *backupjob.Job) {
		b.Backup, b.Attempt = nil, 0
		weekly := *b.Profile.DeepCopy()
		weekly.Name, weekly.Timeout.Duration = "weekly", 12*time.Hour
		b.Group.Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{b.Profile, weekly}}
	})
	if c := configOf(t, job.Sweep()); c.OlderThanSeconds != int64((13 * time.Hour).Seconds()) {
		t.Errorf("I23: what is older than %d s is swept, and a backup of profile weekly takes up to 12 h", c.OlderThanSeconds)
	}
}

// What removes something says whose it is; of a backup that was never complete also since when.
func TestWhatRemovesKnowsItsOwn(t *testing.T) {
	made := metav1.NewTime(time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC))
	for complete, want := range map[bool]*time.Time{true: nil, false: &made.Time} {
		job := backupJob(func(b *backupjob.Job) {
			b.Backup.CreationTimestamp = made
			if complete {
				b.Backup.Status.MySQLVersion = "9.7.4"
			}
		})
		for name, c := range map[string]wire.BackupConfig{"delete": configOf(t, job.Delete()), "sweep": configOf(t, job.Sweep())} {
			if c.GroupUID != string(job.Group.UID) {
				t.Errorf("%s does not know its group: %+v", name, c)
			}
		}
		if diff := cmp.Diff(want, configOf(t, job.Delete()).NotBefore); diff != "" {
			t.Errorf("complete: %t: -want +got:\n%s", complete, diff)
		}
		if c := configOf(t, job.Make()); c.NotBefore == nil || !c.NotBefore.Equal(made.Time) {
			t.Errorf("what makes it does not know since when it is asked for: %v", c.NotBefore)
		}
	}
}

func physical(b *backupjob.Job) { b.Profile.Method = v1alpha1.BackupPhysical }

func encryptedGroup(b *backupjob.Job) {
	b.Group.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"}
	b.Group.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
	b.Profile.Encryption = &v1alpha1.BackupEncryption{Recipients: []string{recipient}, IdentitySecretName: "age"}
	b.Profile.Scratch = &v1alpha1.BackupScratch{Size: resource.MustParse("50Gi"), StorageClassName: new("fast")}
	b.Profile.Verification = &v1alpha1.BackupVerification{Query: "SELECT 1"}
}

var backupJobs = map[string]func() *batchv1.Job{
	"backup-logical":   func() *batchv1.Job { return backupJob().Make() },
	"backup-physical":  func() *batchv1.Job { return backupJob(physical).Make() },
	"backup-encrypted": func() *batchv1.Job { return backupJob(physical, encryptedGroup).Make() },
	"verify":           func() *batchv1.Job { return backupJob().Verify() },
	"verify-encrypted": func() *batchv1.Job { return backupJob(encryptedGroup).Verify() },
	"delete":           func() *batchv1.Job { return backupJob().Delete() },
	"sweep": func() *batchv1.Job {
		return backupJob(func(b *backupjob.Job) { b.Backup, b.Attempt = nil, 0 }).Sweep()
	},
}

func TestBackupJobsGolden(t *testing.T) {
	for name, made := range backupJobs {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(made())
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "job-"+name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-golden +got:\n%s", diff)
			}
		})
	}
}

// Whatever a Job does: it has no rights, one try, a bound in time, and nothing that finds the pods of a group finds its pod.
func TestEveryBackupJob(t *testing.T) {
	for name, made := range backupJobs {
		t.Run(name, func(t *testing.T) {
			job := made()
			pod := job.Spec.Template.Spec
			switch labels := job.Spec.Template.Labels; {
			case *job.Spec.BackoffLimit != 0 || *job.Spec.ActiveDeadlineSeconds <= 0 || *job.Spec.TTLSecondsAfterFinished <= 0 || pod.RestartPolicy != corev1.RestartPolicyNever:
				t.Errorf("it is not bounded: %+v", job.Spec)
			case *pod.AutomountServiceAccountToken || *pod.TerminationGracePeriodSeconds < 45:
				t.Errorf("token, or too little time to give way: %+v", pod)
			case labels[v1alpha1.LabelGroup] != "" || labels[v1alpha1.LabelName] != v1alpha1.NameBackup || labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator:
				t.Errorf("labels of the pod: %v", labels)
			case len(job.OwnerReferences) != 1 || job.Labels[v1alpha1.LabelGroup] != "orders":
				t.Errorf("metadata: %+v", job.ObjectMeta)
			}
			for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
				s := c.SecurityContext
				if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !*s.RunAsNonRoot || s.Capabilities.Drop[0] != "ALL" {
					t.Errorf("container %s: %+v", c.Name, s)
				}
			}
			for _, v := range pod.Volumes {
				if e := v.EmptyDir; e != nil && e.SizeLimit == nil {
					t.Errorf("volume %s has no bound", v.Name)
				}
			}
		})
	}
}

func configOf(t *testing.T, job *batchv1.Job) wire.BackupConfig {
	t.Helper()
	var c wire.BackupConfig
	for _, e := range job.Spec.Template.Spec.Containers[0].Env {
		if e.Name == wire.EnvBackupConfig {
			if err := json.Unmarshal([]byte(e.Value), &c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

func volumeOf(job *batchv1.Job, name string) *corev1.Volume {
	for i := range job.Spec.Template.Spec.Volumes {
		if v := &job.Spec.Template.Spec.Volumes[i]; v.Name == name {
			return v
		}
	}
	return nil
}

// Nothing of an encrypted group is on a disk in the clear: temporary files and the keyring are in memory.
func TestBackupJobsOfEncryptedGroups(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{"make": backupJob(physical, encryptedGroup).Make(), "verify": backupJob(encryptedGroup).Verify()} {
		c := configOf(t, job)
		for _, v := range []string{"run", "tmp", "keyring"} {
			if got := volumeOf(job, v); got == nil || got.EmptyDir == nil || got.EmptyDir.Medium != corev1.StorageMediumMemory {
				t.Errorf("%s: volume %s is not in memory: %+v", name, v, got)
			}
		}
		if c.Server.KeyringFile != "/run/mysql-keyring/keyring" {
			t.Errorf("%s: keyring in %q", name, c.Server.KeyringFile)
		}
		if got := volumeOf(job, "scratch"); got == nil || got.Ephemeral == nil || len(got.Ephemeral.VolumeClaimTemplate.Labels) == 0 || got.Ephemeral.VolumeClaimTemplate.Labels[v1alpha1.LabelGroup] != "" {
			t.Errorf("%s: scratch %+v", name, got)
		}
	}
	if c := configOf(t, backupJob(physical, encryptedGroup).Make()); c.Recipients[0] != recipient || c.IdentityFile != "" || c.Source.CAFile == "" {
		t.Errorf("what makes backups cannot read one: %+v", c)
	}
	if c := configOf(t, backupJob(encryptedGroup).Verify()); c.IdentityFile == "" || c.Query != "SELECT 1" || c.Source.Host != "" {
		t.Errorf("what verifies reads one, and reaches no site: %+v", c)
	}
}

// Only what copies a site has a password of it, and only that one.
func TestPasswordsOfBackupJobs(t *testing.T) {
	for name, made := range backupJobs {
		job := made()
		account := volumeOf(job, "backup-account")
		if makes := strings.HasPrefix(name, "backup-"); (account != nil) != makes {
			t.Errorf("%s has the password: %v", name, account != nil)
		}
		if account != nil && (len(account.Secret.Items) != 1 || account.Secret.Items[0].Key != v1alpha1.AccountBackup) {
			t.Errorf("%s: %+v", name, account.Secret)
		}
	}
}

func TestScratchOfBackupJobs(t *testing.T) {
	if v := volumeOf(backupJob().Make(), "scratch"); v != nil {
		t.Errorf("a dump needs no room: %+v", v)
	}
	if v := volumeOf(backupJob(physical).Make(), "scratch"); v == nil || v.EmptyDir == nil || v.EmptyDir.SizeLimit.String() != "20Gi" {
		t.Errorf("an emptyDir of the size of the site: %+v", v)
	}
	// The name and the method of the backup win over those of the profile.
	b := backupJob(func(b *backupjob.Job) { b.Backup.Spec.Method = v1alpha1.BackupPhysical })
	if c := configOf(t, b.Make()); c.Method != "Physical" || c.Server.Dir == "" {
		t.Errorf("%+v", c)
	}
}

// What a profile leaves out has a default: two hours, the room of the profile, or that of the site, or what an empty site has.
func TestDefaultsOfBackupJobs(t *testing.T) {
	without := func(b *backupjob.Job) { b.Profile.Timeout.Duration = 0 }
	if got := configOf(t, backupJob(without).Make()).TimeoutSeconds; got != 2*60*60 {
		t.Errorf("an attempt may take %d s", got)
	}
	if v := volumeOf(backupJob(physical, func(b *backupjob.Job) { b.Site.Storage.Size = resource.Quantity{} }).Make(), "scratch"); v == nil || v.EmptyDir.SizeLimit.String() != "10Gi" {
		t.Errorf("of a site that names no size: %+v", v)
	}
	room := func(size string) *v1alpha1.BackupScratch {
		return &v1alpha1.BackupScratch{Size: resource.MustParse(size)}
	}
	for want, change := range map[string]func(*backupjob.Job){
		"7Gi": func(b *backupjob.Job) { b.Profile.Scratch = room("7Gi") },
		"9Gi": func(b *backupjob.Job) {
			b.Profile.Scratch, b.Profile.Verification = room("7Gi"), &v1alpha1.BackupVerification{Scratch: room("9Gi")}
		},
	} {
		v := volumeOf(backupJob(change).Verify(), "scratch")
		if v == nil || v.Ephemeral == nil {
			t.Fatalf("%s: %+v", want, v)
		}
		if got := v.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != want {
			t.Errorf("a verification has %s, want %s", got.String(), want)
		}
	}
	plain := backupJob(func(b *backupjob.Job) { b.Group.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{} })
	if v := volumeOf(plain.Verify(), "tmp"); v == nil || v.EmptyDir == nil || v.EmptyDir.Medium != "" {
		t.Errorf("of a group that only has the field: %+v", v)
	}
}

// A verification goes on to the end of the archive where there is one in the same storage, unless a person says no.
func TestWhichVerificationsReplay(t *testing.T) {
	yes, no := true, false
	for name, tc := range map[string]struct {
		pitr   *v1alpha1.PITRSpec
		replay *bool
		want   bool
	}{
		"no archive":              {nil, nil, false},
		"it is off":               {&v1alpha1.PITRSpec{Profile: "nightly"}, nil, false},
		"it is in another place":  {&v1alpha1.PITRSpec{Enabled: true, Profile: "weekly"}, nil, false},
		"it is here":              {&v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"}, nil, true},
		"it is here, and wanted":  {&v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"}, &yes, true},
		"it is here, not wanted":  {&v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"}, &no, false},
		"not there, but wanted":   {nil, &yes, false},
		"in another, but wanted":  {&v1alpha1.PITRSpec{Enabled: true, Profile: "weekly"}, &yes, false},
		"it is off, and unwanted": {&v1alpha1.PITRSpec{Profile: "nightly"}, &no, false},
	} {
		for _, verified := range []bool{true, false} {
			job := backupJob(func(b *backupjob.Job) {
				b.Group.Spec.Backup = &v1alpha1.BackupSpec{PITR: tc.pitr}
				if b.Profile.Verification = nil; verified {
					b.Profile.Verification = &v1alpha1.BackupVerification{Replay: tc.replay}
				}
			})
			want := tc.want || !verified && tc.pitr != nil && tc.pitr.Enabled && tc.pitr.Profile == "nightly"
			if got := configOf(t, job.Verify()).Replay; got != want {
				t.Errorf("%s, with a verification in the profile %t: replays %t", name, verified, got)
			}
		}
	}
}
