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

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
)

func TestBackupStorage(t *testing.T) {
	for name, tc := range map[string]struct {
		storage  v1alpha1.BackupStorage
		identity string
		bucket   wire.BackupBucket
		// secrets are "volume secret keys", mounts are "volume path".
		secrets, mounts []string
	}{
		"s3": {
			storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", Prefix: "a/b", Endpoint: "https://s3:9000", SecretName: "keys", CASecretName: "ca"}}, identity: "id",
			bucket: wire.BackupBucket{S3: &wire.BackupS3{Bucket: "backups", Region: "us-east-1", Endpoint: "https://s3:9000"}, Prefix: "a/b",
				CredentialsDir: "/etc/mfg-backup/credentials", CAFile: "/etc/mfg-backup/ca/ca.crt"},
			secrets: []string{"backup-credentials keys accessKeyID secretAccessKey sessionToken", "backup-ca ca ca.crt", "backup-identity id identity"},
			mounts:  []string{"backup-credentials /etc/mfg-backup/credentials", "backup-ca /etc/mfg-backup/ca", "backup-identity /etc/mfg-backup/identity"},
		},
		"gcs": {
			storage: v1alpha1.BackupStorage{GCS: &v1alpha1.GCSStorage{Bucket: "backups", Prefix: "p", SecretName: "keys"}},
			bucket:  wire.BackupBucket{GCS: &wire.BackupGCS{Bucket: "backups"}, Prefix: "p", CredentialsDir: "/etc/mfg-backup/credentials"},
			secrets: []string{"backup-credentials keys credentials.json"}, mounts: []string{"backup-credentials /etc/mfg-backup/credentials"},
		},
		"azure": {
			storage: v1alpha1.BackupStorage{Azure: &v1alpha1.AzureStorage{Container: "backups", Prefix: "p", SecretName: "keys"}},
			bucket:  wire.BackupBucket{Azure: &wire.BackupAzure{Container: "backups"}, Prefix: "p", CredentialsDir: "/etc/mfg-backup/credentials"},
			secrets: []string{"backup-credentials keys accountName accountKey"}, mounts: []string{"backup-credentials /etc/mfg-backup/credentials"},
		},
		"volume": {
			storage: v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "nfs", SubPath: "a"}},
			bucket:  wire.BackupBucket{Folder: "/var/lib/mfg-backup"}, mounts: []string{"backup-storage /var/lib/mfg-backup a"},
		},
	} {
		p := render.BackupStorage(render.BackupAccess{Storage: tc.storage, Namespace: "shop", Group: "orders", IdentitySecret: tc.identity, ReadOnly: true})
		tc.bucket.Namespace, tc.bucket.Group = "shop", "orders"
		if diff := cmp.Diff(tc.bucket, p.Bucket); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var secrets, mounts []string
		for _, v := range p.Volumes {
			if v.Secret == nil {
				continue
			}
			line := v.Name + " " + v.Secret.SecretName
			for _, item := range v.Secret.Items {
				line += " " + item.Key
			}
			secrets = append(secrets, line)
			if *v.Secret.DefaultMode != 0o440 || v.Secret.Optional == nil || !*v.Secret.Optional {
				t.Errorf("%s: volume %s: %+v", name, v.Name, v.Secret)
			}
		}
		for _, m := range p.Mounts {
			mounts = append(mounts, strings.TrimSpace(m.Name+" "+m.MountPath+" "+m.SubPath))
			if !m.ReadOnly {
				t.Errorf("%s: %s can be written", name, m.Name)
			}
		}
		if diff := cmp.Diff([][]string{tc.secrets, tc.mounts}, [][]string{secrets, mounts}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if (p.IdentityFile != "") != (tc.identity != "") || tc.identity != "" && p.IdentityFile != "/etc/mfg-backup/identity/identity" {
			t.Errorf("%s: identity %q", name, p.IdentityFile)
		}
	}
	p := render.BackupStorage(render.BackupAccess{Storage: v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "nfs"}}})
	if p.Mounts[0].ReadOnly {
		t.Error("nothing could be stored")
	}
}

func restored(in *render.Input) {
	in.Install.BackupImage, in.Install.BackupPullPolicy = "example.org/mfg/backup:v1", corev1.PullIfNotPresent
	in.Restore = &render.Restore{Site: "paris", From: render.BackupAccess{
		Storage:   v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", Endpoint: "https://s3:9000", SecretName: "keys", CASecretName: "ca"}},
		Namespace: "old", Group: "orders", IdentitySecret: "id", ReadOnly: true,
	}}
}

// I25: bootstrap makes no empty database where a backup belongs, and the backup is loaded before it, in the very pod.
func TestTheRestoredPodI25(t *testing.T) {
	for name, more := range map[string]option{"plain": func(*render.Input) {}, "TLS": tls, "encrypted": encrypted(fresh)} {
		in := input(restored, more)
		spec := render.Deployment(in, in.Group.Spec.Sites[0]).Spec.Template.Spec
		restricted(t, spec)
		var order []string
		for _, c := range spec.InitContainers {
			order = append(order, c.Name)
		}
		if diff := cmp.Diff([]string{"install", "install-backup", "load", "bootstrap", "sidecar"}, order); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		load, bootstrap := containers(spec)["load"], containers(spec)["bootstrap"]
		if len(load.Env) != 1 || load.Env[0].Name != wire.EnvBackupConfig || load.Image != in.Group.Spec.Image {
			t.Errorf("%s: %+v", name, load)
		}
		if got := env(bootstrap, "MFG_RESTORE"); got != "true" {
			t.Errorf("%s: MFG_RESTORE is %q", name, got)
		}
		if got := env(containers(spec)["sidecar"], "MFG_RESTORE"); got != "" {
			t.Errorf("%s: the sidecar is told of it: %q", name, got)
		}
		for _, part := range []string{
			`"dir":"/var/lib/mysql/data.restored"`, `"stateDir":"/var/lib/mysql/mfg"`, `"namespace":"old"`, `"groupUID":"11111111-2222-3333-4444-555555555555"`,
			`"accountsDir":"/etc/mfg-accounts"`, `"defaultsFile":"/etc/mfg/my.cnf"`, `"resultFile":"/dev/termination-log"`,
			`"identityFile":"/etc/mfg-backup/identity/identity"`, `"storageDigest":"` + in.Restore.From.Storage.Digest("old", "orders") + `"`,
		} {
			if !strings.Contains(load.Env[0].Value, part) {
				t.Errorf("%s: the program is not told %s: %s", name, part, load.Env[0].Value)
			}
		}
		if has := strings.Contains(load.Env[0].Value, "keyringFile"); has != (name == "encrypted") {
			t.Errorf("%s: keyring %t", name, has)
		}
		mounted := map[string]bool{}
		for _, m := range load.VolumeMounts {
			mounted[m.Name] = true
		}
		for _, m := range bootstrap.VolumeMounts {
			if !mounted[m.Name] && m.Name != "keyring-seed" {
				t.Errorf("%s: bootstrap has %s, and load has not", name, m.Name)
			}
		}
		for _, v := range spec.Volumes {
			delete(mounted, v.Name)
		}
		if len(mounted) > 0 {
			t.Errorf("%s: there are no volumes %v", name, mounted)
		}
		// What belongs to the backup is seen by load alone.
		for other, c := range containers(spec) {
			for _, m := range c.VolumeMounts {
				if strings.HasPrefix(m.Name, "backup-") && other != "load" {
					t.Errorf("%s: container %s sees %s", name, other, m.Name)
				}
			}
		}
		for _, site := range in.Group.Spec.Sites[1:] {
			with, without := render.Deployment(in, site), in
			without.Restore = nil
			if diff := cmp.Diff(with, render.Deployment(without, site)); diff != "" {
				t.Errorf("%s: site %s is made otherwise: %s", name, site.Name, diff)
			}
		}
	}
}

// A load beside a mysqld gives memory back before the kernel ends both.
func TestALoadKnowsItsMemory(t *testing.T) {
	for limit, want := range map[string]string{"": "", "2Gi": "1073741824"} {
		in := input(restored, func(in *render.Input) {
			in.Group.Spec.Sites[0].Resources = corev1.ResourceRequirements{}
			if limit != "" {
				in.Group.Spec.Sites[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
			}
		})
		all := containers(render.Deployment(in, in.Group.Spec.Sites[0]).Spec.Template.Spec)
		if got := env(all["load"], "GOMEMLIMIT"); got != want || env(all["bootstrap"], "GOMEMLIMIT") != "" {
			t.Errorf("of %q it is told %q, want %q", limit, got, want)
		}
	}
}

func env(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// TestWhatALoadIsToldI25: where it stops, whether its connections need TLS, where the keyring is, and where the backup lies.
func TestWhatALoadIsToldI25(t *testing.T) {
	moment, yes, no := v1alpha1.NewMoment(time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC)), true, false
	stops := func(p v1alpha1.PointInTime) option { return func(in *render.Input) { in.Restore.PointInTime = &p } }
	point := func(p wire.BackupPointInTime) *wire.BackupPointInTime { return &p }
	for name, tc := range map[string]struct {
		change  option
		point   *wire.BackupPointInTime
		tls     bool
		keyring string
	}{
		"the backup alone": {func(*render.Input) {}, nil, false, ""},
		"to a time":        {stops(v1alpha1.PointInTime{Time: &moment}), point(wire.BackupPointInTime{Time: &moment.Time}), false, ""},
		"to a set":         {stops(v1alpha1.PointInTime{GTID: "a:1-9", BeforeGTID: "a:10"}), point(wire.BackupPointInTime{GTID: "a:1-9", BeforeGTID: "a:10"}), false, ""},
		"to a failover":    {stops(v1alpha1.PointInTime{BeforeFailover: 4}), point(wire.BackupPointInTime{BeforeFailover: 4}), false, ""},
		"to the end":       {stops(v1alpha1.PointInTime{Latest: &yes}), point(wire.BackupPointInTime{Latest: true}), false, ""},
		"not to the end":   {stops(v1alpha1.PointInTime{Latest: &no}), point(wire.BackupPointInTime{}), false, ""},
		"with TLS":         {tls, nil, true, ""},
		"encrypted":        {encrypted(fresh), nil, true, "/run/mysql-keyring/keyring"},
		"encrypted, as is usual": {func(in *render.Input) {
			encrypted(fresh)(in)
			in.Group.Spec.EncryptionAtRest.Keyring = v1alpha1.KeyringSpec{}
		}, nil, true, "/run/mysql-keyring/keyring"},
	} {
		in := input(restored, tc.change)
		load := containers(render.Deployment(in, in.Group.Spec.Sites[0]).Spec.Template.Spec)["load"]
		var c wire.BackupConfig
		if err := json.Unmarshal([]byte(env(load, wire.EnvBackupConfig)), &c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.point, c.PointInTime); diff != "" {
			t.Errorf("I25: %s: %s", name, diff)
		}
		if c.RequireTLS != tc.tls || c.Server.KeyringFile != tc.keyring {
			t.Errorf("%s: requires TLS %t, keyring %q", name, c.RequireTLS, c.Server.KeyringFile)
		}
		if !slices.ContainsFunc(load.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "backup-credentials" }) {
			t.Errorf("I25: %s: it cannot reach the storage: %v", name, load.VolumeMounts)
		}
	}
}
