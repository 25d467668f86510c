// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
)

const ageRecipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

// archived has the binary logs of the group archived.
func archived(in *render.Input) {
	in.Install.BackupImage, in.Install.BackupPullPolicy = "mfg-backup:1", corev1.PullIfNotPresent
	in.Group.Spec.Backup = &v1alpha1.BackupSpec{
		Profiles: []v1alpha1.BackupProfile{{
			Name: "nightly", Encryption: &v1alpha1.BackupEncryption{Recipients: []string{ageRecipient}, IdentitySecretName: "identity"},
			Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", Prefix: "a/b", SecretName: "keys", CASecretName: "storage-ca"}},
		}},
		PITR: &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly", Interval: metav1.Duration{Duration: 10 * time.Second}},
	}
}

func archiverOf(t *testing.T, in render.Input) (corev1.Container, wire.ArchiverConfig) {
	t.Helper()
	c, there := containers(pod(in))[render.ContainerArchiver]
	if !there {
		t.Fatal("nothing archives")
	}
	var config wire.ArchiverConfig
	if err := json.Unmarshal([]byte(envOf(c)[wire.EnvArchiverConfig]), &config); err != nil {
		t.Fatal(err)
	}
	return c, config
}

// Whoever has no archive has the pod that he had, byte for byte: an update of the operator replaces no pod for it.
func TestAPodWithoutAnArchiveIsWhatItWas(t *testing.T) {
	plain := input()
	plain.Install.BackupImage = "mfg-backup:1"
	before := render.Deployment(input(), input().Group.Spec.Sites[0])
	for name, change := range map[string]option{
		"no backups": func(in *render.Input) { in.Group.Spec.Backup = nil },
		"no archive": func(in *render.Input) { archived(in); in.Group.Spec.Backup.PITR = nil },
		"off":        func(in *render.Input) { archived(in); in.Group.Spec.Backup.PITR.Enabled = false },
		"no profile": func(in *render.Input) { archived(in); in.Group.Spec.Backup.PITR.Profile = "weekly" },
		"no image":   func(in *render.Input) { archived(in); in.Install.BackupImage = "" },
		"a volume": func(in *render.Input) {
			archived(in)
			in.Group.Spec.Backup.Profiles[0].Storage = v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "v"}}
		},
	} {
		in := input(change)
		if diff := cmp.Diff(before, render.Deployment(in, in.Group.Spec.Sites[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	in := input(archived)
	with := render.Deployment(in, in.Group.Spec.Sites[0])
	if with.Annotations[v1alpha1.AnnotationSpecHash] == before.Annotations[v1alpha1.AnnotationSpecHash] {
		t.Error("turning the archive on replaces no pod")
	}
}

func TestTheArchiverIsRestricted(t *testing.T) {
	in := input(tls, archived)
	spec := pod(in)
	restricted(t, spec)
	c, _ := archiverOf(t, in)
	// The kubelet starts mysqld whatever becomes of it, and nothing asks whether it is ready.
	if !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == render.ContainerArchiver }) || spec.Containers[0].Name != render.ContainerMySQL {
		t.Error("mysqld waits for the archiver")
	}
	if c.ReadinessProbe != nil || c.StartupProbe != nil || c.LivenessProbe != nil || c.Lifecycle != nil || len(c.Ports) > 0 {
		t.Errorf("it has a part in the life of the pod: %+v", c)
	}
	if memory := c.Resources.Limits.Memory(); memory.Value() != 256<<20 || !c.Resources.Limits.Cpu().IsZero() || c.Resources.Requests.Memory().Value() != 64<<20 {
		t.Errorf("resources %+v", c.Resources)
	}
	if got := envOf(c)["GOMEMLIMIT"]; got != "201326592" {
		t.Errorf("it gives memory back at %s", got)
	}
	var writes []string
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly {
			writes = append(writes, m.MountPath)
		}
	}
	if !slices.Equal(writes, []string{"/run/mfg-archive"}) {
		t.Errorf("it can write to %v", writes)
	}
	want := []string{"keys/accessKeyID", "keys/secretAccessKey", "keys/sessionToken", "mysql-orders-accounts/backup", "storage-ca/ca.crt"}
	if diff := cmp.Diff(want, secretsOf(spec, c)); diff != "" {
		t.Errorf("it reads (-want +got):\n%s", diff)
	}
	for _, v := range spec.Volumes {
		mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
		if mounted && v.Secret != nil && (v.Secret.Optional == nil || !*v.Secret.Optional) {
			t.Errorf("a Secret that is missing keeps MySQL from starting: %s", v.Name)
		}
	}
}

func TestWhatTheArchiverIsTold(t *testing.T) {
	in := input(archived)
	c, config := archiverOf(t, in)
	want := wire.ArchiverConfig{
		Bucket: wire.BackupBucket{S3: &wire.BackupS3{Bucket: "backups", Region: "us-east-1"}, Prefix: "a/b", Namespace: "shop", Group: "orders",
			CredentialsDir: "/etc/mfg-backup/credentials", CAFile: "/etc/mfg-backup/ca/ca.crt"},
		Profile: "nightly", GroupUID: "11111111-2222-3333-4444-555555555555", Site: "paris", Recipients: []string{ageRecipient}, IntervalMillis: 10_000,
		OperatorURL: in.Install.OperatorURL, AuthorityKey: in.Anchors["paris"], SidecarURL: "http://127.0.0.1:8090",
		Server: wire.ArchiverServer{Socket: "/run/mfg/mysqld.sock", User: "mfg_backup", PasswordFile: "/etc/mfg-archive/account/backup",
			BinlogIndex: "/var/lib/mysql/data/binlog.index"},
		StatusFile: "/run/mfg-archive/archiver.json", MemoryBytes: 256 << 20,
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(c.Args, []string{"archive"}) || c.Image != "mfg-backup:1" || config.Interval() != 10*time.Second {
		t.Errorf("%s %v, every %s", c.Image, c.Args, config.Interval())
	}
	side := containers(pod(in))[render.ContainerSidecar]
	if envOf(side)[wire.EnvArchiverStatus] != want.StatusFile || !slices.ContainsFunc(side.VolumeMounts, func(m corev1.VolumeMount) bool {
		return strings.HasPrefix(want.StatusFile, m.MountPath+"/") && m.ReadOnly
	}) {
		t.Errorf("the sidecar cannot read the status: %+v", side.VolumeMounts)
	}
	_, config = archiverOf(t, input(archived, func(in *render.Input) {
		p := &in.Group.Spec.Backup.Profiles[0]
		in.Group.Spec.Backup.PITR.Interval, p.Encryption = metav1.Duration{}, nil
		in.Group.Spec.Backup.PITR.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
	}))
	if config.Interval() != 30*time.Second || config.Recipients != nil || config.MemoryBytes != 512<<20 {
		t.Errorf("%+v", config)
	}
}

// The credentials of the archive may be narrower than those of backups: they are in the pods of MySQL.
func TestTheArchiverTakesTheNarrowSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		storage v1alpha1.BackupStorage
		want    []string
	}{
		"s3":    {v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "b", SecretName: "wide"}}, []string{"narrow/accessKeyID", "narrow/secretAccessKey", "narrow/sessionToken"}},
		"gcs":   {v1alpha1.BackupStorage{GCS: &v1alpha1.GCSStorage{Bucket: "b", SecretName: "wide"}}, []string{"narrow/credentials.json"}},
		"azure": {v1alpha1.BackupStorage{Azure: &v1alpha1.AzureStorage{Container: "b", SecretName: "wide"}}, []string{"narrow/accountKey", "narrow/accountName"}},
	} {
		in := input(archived, func(in *render.Input) {
			in.Group.Spec.Backup.PITR.SecretName = "narrow"
			in.Group.Spec.Backup.Profiles[0].Storage = tc.storage
		})
		c, _ := archiverOf(t, in)
		got := slices.DeleteFunc(secretsOf(pod(in), c), func(s string) bool { return strings.HasPrefix(s, "mysql-orders-accounts/") })
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if s := in.Group.Spec.Backup.Profiles[0].Storage; s.S3 != nil && s.S3.SecretName != "wide" {
			t.Errorf("the group was changed: %+v", s.S3)
		}
	}
}

// The first pod of a restored group reads a backup and archives too.
func TestAPodThatIsRestoredHasEachVolumeOnce(t *testing.T) {
	in := input(archived)
	in.Restore = &render.Restore{Site: "paris", From: render.BackupAccess{Storage: in.Group.Spec.Backup.Profiles[0].Storage, Namespace: "old", Group: "orders", IdentitySecret: "identity"}}
	seen := map[string]bool{}
	for _, v := range pod(in).Volumes {
		if seen[v.Name] {
			t.Errorf("volume %s is there twice", v.Name)
		}
		seen[v.Name] = true
	}
	if _, config := archiverOf(t, in); config.Bucket.Namespace != "shop" {
		t.Errorf("it archives into the place of %s/%s", config.Bucket.Namespace, config.Bucket.Group)
	}
}
