// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Where the API server has the classes of volumes, and the volumes.
const (
	classesPath = "/apis/storage.k8s.io/v1/storageclasses"
	volumesPath = "/api/v1/persistentvolumes"
)

// TestRestoreYAML: what is printed is a group that can be applied as it stands.
func TestRestoreYAML(t *testing.T) {
	for name, tc := range map[string]struct {
		args   string
		before func(*backupAPI)
		want   v1alpha1.InitFromBackupSpec
		says   string
	}{
		"Newest": {args: "", want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "fresh (Logical, 4.1GiB, of 2026-11-03 10:00:00Z, never verified)"},
		"PassesOver": {args: "", before: func(f *backupAPI) {
			f.backups = slices.DeleteFunc(f.backups, func(b v1alpha1.MysqlBackup) bool { return b.Name == "fresh" })
		},
			want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "old"}, says: "over spoilt: its verification failed"},
		"Named":        {args: "--backup old", want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "old"}},
		"NamedSpoilt":  {args: "--backup spoilt", want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "spoilt"}, says: "the last verification of this backup failed"},
		"OfTheStorage": {args: "--backup elsewhere", want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "elsewhere"}, says: "of which this cluster does not know"},
		"NoneKnown":    {args: "", before: func(f *backupAPI) { f.backups = nil }, want: v1alpha1.InitFromBackupSpec{Profile: "nightly"}, says: "this cluster knows of no backup of shop/orders"},
		"NoneToBeSeen": {args: "", before: func(f *backupAPI) {
			f.refused["GET mysqlbackups"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "you may not")
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly"}, says: "could not be listed"},
		"OwnIdentity": {args: "--identity-secret identity", want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh", Encryption: &v1alpha1.RestoreEncryption{IdentitySecretName: "identity"}}, says: "key identity of Secret identity"},
		"MayNotSeeKeys": {args: "", before: func(f *backupAPI) {
			f.answers[secretsPath+"/keys"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "Secret keys: you may not look at it"},
		"PullSecret": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			f.objects[secretsPath+"/registry"] = corev1.Secret{}
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}},
		"NoPullSecret": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			f.answers[secretsPath+"/registry"] = status(http.StatusNotFound, metav1.StatusReasonNotFound, "no")
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "kubectl create secret docker-registry registry -n shop --from-file=.dockerconfigjson=FILE"},
		"NoClassOfTheCache": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Storage: &v1alpha1.CacheStorage{StorageClassName: new("fast")}}
			f.answers[classesPath+"/fast"] = status(http.StatusNotFound, metav1.StatusReasonNotFound, "no")
			f.objects[volumesPath] = corev1.PersistentVolumeList{}
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "there is no StorageClass fast (the cache): the restore does not need it"},
		"NoClassOfBackups": {args: "", before: func(f *backupAPI) {
			profile := &f.groups[0].Spec.Backup.Profiles[0]
			profile.Scratch = &v1alpha1.BackupScratch{StorageClassName: new("fast")}
			profile.Verification = &v1alpha1.BackupVerification{Scratch: profile.Scratch}
			f.answers[classesPath+"/fast"] = status(http.StatusNotFound, metav1.StatusReasonNotFound, "no")
			f.objects[volumesPath] = corev1.PersistentVolumeList{}
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "(scratch of profile nightly, verification of profile nightly)"},
		"Class": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.Sites[0].Storage.StorageClassName = new("fast")
			f.objects[classesPath+"/fast"] = storagev1.StorageClass{}
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}},
		"NoClassIsNamed": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.Sites[0].Storage.StorageClassName = new("")
			f.groups[0].Spec.Cache = &v1alpha1.CacheSpec{Storage: &v1alpha1.CacheStorage{StorageClassName: new("of a cache that is off")}}
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}},
		"ClassOfVolumesByHand": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.Sites[0].Storage.StorageClassName = new("hand")
			f.answers[classesPath+"/hand"] = status(http.StatusNotFound, metav1.StatusReasonNotFound, "no")
			f.objects[volumesPath] = corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{{Spec: corev1.PersistentVolumeSpec{StorageClassName: "hand"}}}}
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}},
		"MayNotSeeClass": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.Sites[0].Storage.StorageClassName = new("fast")
			f.answers[classesPath+"/fast"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "StorageClass fast (site paris): you may not look at it"},
		"MayNotSeeVolumes": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.Sites[0].Storage.StorageClassName = new("hand")
			f.answers[classesPath+"/hand"] = status(http.StatusNotFound, metav1.StatusReasonNotFound, "no")
			f.answers[volumesPath] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "there is no StorageClass hand (site paris), and whether people made volumes"},
		"MayNotMake": {args: "", before: func(f *backupAPI) {
			f.refused["POST mysqlfailovergroups"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "the API server was not asked"},
		"NoDNS": {args: "", before: func(f *backupAPI) { f.groups[0].Spec.DNS = &v1alpha1.DNSSpec{} }, want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "two groups would publish one name"},
		"OwnCertificate": {args: "", before: func(f *backupAPI) {
			f.groups[0].Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls", IssuerRef: &v1alpha1.IssuerRef{Name: "ca"}}
		},
			want: v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: "fresh"}, says: "spec.tls.secretName is orders-2-tls"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, several()...)
			if tc.before != nil {
				tc.before(f)
			}
			got := run(t, f, runOptions{}, append(strings.Fields("restore orders-2 --from orders -n shop"), strings.Fields(tc.args)...)...)
			if got.code != cli.ExitHealthy || !strings.Contains(strings.Join(strings.Fields(got.errOut), " "), tc.says) {
				t.Fatalf("%+v", got)
			}
			var g v1alpha1.MysqlFailoverGroup
			if err := yaml.UnmarshalStrict([]byte(got.out), &g); err != nil {
				t.Fatalf("%v:\n%s", err, got.out)
			}
			tc.want.From = &v1alpha1.RestoreFrom{Namespace: "shop", Group: "orders"}
			if diff := cmp.Diff(&tc.want, g.Spec.InitFromBackup); diff != "" || g.Name != "orders-2" || g.Namespace != "shop" || g.Kind != "MysqlFailoverGroup" {
				t.Errorf("%s/%s (-want +got):\n%s", g.Namespace, g.Name, diff)
			}
			if diff := cmp.Diff(f.groups[0].Spec.Sites, g.Spec.Sites); diff != "" || g.Spec.DNS != nil || strings.Contains(got.out, "status") {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(got.out+got.errOut, "hush") {
				t.Error("what is in a Secret is shown")
			}
			if slices.Contains(f.did, "create group orders-2") {
				t.Error("the group was made")
			}
		})
	}
}

// TestRestoreRefused: what can be found out before anything is touched is, each with its way out.
func TestRestoreRefused(t *testing.T) {
	second := func(f *backupAPI) {
		p := nightly()
		p.Name = "weekly"
		f.groups[0].Spec.Backup.Profiles = append(f.groups[0].Spec.Backup.Profiles, p)
	}
	for name, tc := range map[string]struct {
		args   string
		before func(*backupAPI)
		files  map[string]string
		code   int
		want   string
	}{
		"Taken":         {args: "stock --from orders", before: func(f *backupAPI) { f.groups = append(f.groups, f.groups[0]); f.groups[1].Name = "stock" }, code: cli.ExitRefused, want: "nothing is restored over a group"},
		"SameName":      {args: "orders --from orders", code: cli.ExitRefused, want: "kubectl mfg restore orders-restored --from orders -n shop"},
		"GroupGone":     {args: "b --from lost", code: cli.ExitRefused, want: "give it as a file: kubectl mfg restore b --from lost -f GROUP.yaml -n shop"},
		"NotComplete":   {args: "b --from orders --backup broken", code: cli.ExitRefused, want: "is Failed, and there is nothing to restore from it"},
		"NoneGood":      {args: "b --from orders", before: func(f *backupAPI) { f.backups = f.backups[1:2] }, code: cli.ExitRefused, want: "none of the 1 backups of orders"},
		"NoProfile":     {args: "b --from orders", before: func(f *backupAPI) { f.groups[0].Spec.Backup = nil }, code: cli.ExitRefused, want: "--storage-file FILE"},
		"NoSuchProfile": {args: "b --from orders --profile monthly", before: func(f *backupAPI) { f.backups = nil }, code: cli.ExitUsage, want: "the profiles are nightly"},
		"WhichProfile":  {args: "b --from orders", before: func(f *backupAPI) { second(f); f.backups = nil }, code: cli.ExitUsage, want: "choose one with --profile: nightly, weekly"},
		"NoSecret": {args: "b --from orders", before: func(f *backupAPI) {
			delete(f.objects, secretsPath+"/keys")
			f.answers[secretsPath+"/keys"] = status(404, metav1.StatusReasonNotFound, "no")
		}, code: cli.ExitRefused, want: "there is no Secret keys in namespace shop"},
		"NoKey": {args: "b --from orders", before: func(f *backupAPI) {
			f.objects[secretsPath+"/keys"] = corev1.Secret{Data: map[string][]byte{v1alpha1.BackupAccessKeyID: []byte("hush")}}
		}, code: cli.ExitRefused, want: "has no key secretAccessKey"},
		"NoIdentityKey": {args: "b --from orders", before: func(f *backupAPI) { f.objects[secretsPath+"/identity"] = corev1.Secret{} }, code: cli.ExitRefused, want: "has no key identity"},
		"NoIdentity":    {args: "b --from orders", before: func(f *backupAPI) { f.groups[0].Spec.Backup.Profiles[0].Encryption.IdentitySecretName = "" }, code: cli.ExitRefused, want: "--identity-secret NAME"},
		"NoCertificate": {args: "b --from orders", before: func(f *backupAPI) {
			f.groups[0].Spec.TLS = &v1alpha1.TLSSpec{SecretName: "none"}
			f.answers[secretsPath+"/none"] = status(404, metav1.StatusReasonNotFound, "no")
		}, code: cli.ExitRefused, want: "there is no Secret none in namespace shop"},
		"NoVolume": {args: "b --from orders", before: func(f *backupAPI) {
			f.groups[0].Spec.Backup.Profiles[0].Storage = v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "v"}}
			f.answers["/api/v1/namespaces/shop/persistentvolumeclaims/v"] = status(404, metav1.StatusReasonNotFound, "no")
		}, code: cli.ExitRefused, want: "there is no PersistentVolumeClaim v"},
		"NoClass": {args: "b --from orders", before: func(f *backupAPI) {
			f.groups[0].Spec.Sites[0].Storage.StorageClassName, f.groups[0].Spec.Sites[1].Storage.StorageClassName = new("fast"), new("fast")
			f.answers[classesPath+"/fast"] = status(404, metav1.StatusReasonNotFound, "no")
			f.objects[volumesPath] = corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{{Spec: corev1.PersistentVolumeSpec{StorageClassName: "slow"}}}}
		}, code: cli.ExitRefused, want: "there is no StorageClass fast, which the group names (site paris, site frankfurt)\n  name one that there is in the file for -f"},
		"ClassFails": {args: "b --from orders", before: func(f *backupAPI) {
			f.groups[0].Spec.Sites[0].Storage.StorageClassName = new("fast")
			f.answers[classesPath+"/fast"] = status(500, metav1.StatusReasonInternalError, "not right now")
		}, code: cli.ExitError, want: "not right now"},
		"Invalid": {args: "b --from orders", before: func(f *backupAPI) {
			f.refused["POST mysqlfailovergroups"] = status(422, metav1.StatusReasonInvalid, "the words of the rule")
		}, code: cli.ExitRefused, want: "the words of the rule"},
		"NoNamespace": {args: "b --from orders", before: func(f *backupAPI) {
			f.refused["POST mysqlfailovergroups"] = status(404, metav1.StatusReasonNotFound, `namespaces "shop" not found`)
		}, code: cli.ExitRefused, want: "kubectl create namespace shop"},
		"MayNotMake": {args: "b --from orders --apply", before: func(f *backupAPI) {
			f.refused["POST mysqlfailovergroups"] = status(403, metav1.StatusReasonForbidden, "no")
		}, code: cli.ExitError, want: "kubectl auth can-i create mysqlfailovergroups.mysql-mfg.io -n shop"},
		"NoFrom":       {args: "b", code: cli.ExitUsage, want: "--from is missing"},
		"BadFrom":      {args: "b --from A.b", code: cli.ExitUsage, want: "--from"},
		"BadName":      {args: strings.Repeat("b", 31) + " --from orders", code: cli.ExitUsage, want: "at most 30"},
		"BadNamespace": {args: "b --from orders --from-namespace A", code: cli.ExitUsage, want: "cannot be the name of a namespace"},
		"TwoPlaces":    {args: "b --from orders --profile a --storage-file b", code: cli.ExitUsage, want: "exclude each other"},
		"BadIdentity":  {args: "b --from orders --identity-secret A_b", code: cli.ExitUsage, want: "cannot be the name of a Secret"},
		"NoTime":       {args: "b --from orders --apply --timeout 0s", code: cli.ExitUsage, want: "--timeout must be above 0"},
		"NoFile":       {args: "b --from orders --storage-file missing", code: cli.ExitError, want: "no such file"},
		"Misspelt":     {args: "b --from orders --storage-file f", files: map[string]string{"f": "s3: {buckets: x}"}, code: cli.ExitUsage, want: "buckets"},
		"NoPlace":      {args: "b --from orders --storage-file f", files: map[string]string{"f": "{}"}, code: cli.ExitUsage, want: "names 0 places"},
		"Places":       {args: "b --from orders --storage-file f", files: map[string]string{"f": "{s3: {bucket: abc, secretName: s}, volume: {claimName: v}}"}, code: cli.ExitUsage, want: "names 2 places"},
		"TooLarge":     {args: "b --from orders --storage-file f", files: map[string]string{"f": strings.Repeat("#", 1<<20+1)}, code: cli.ExitUsage, want: "it holds something else"},
		"Documents":    {args: "b --from orders --storage-file f", files: map[string]string{"f": "a: 1\n---\nb: 2\n"}, code: cli.ExitUsage, want: "holds 2 documents"},
		"NoGroup":      {args: "b --from orders -f f", files: map[string]string{"f": "kind: MysqlFailoverGroup"}, code: cli.ExitUsage, want: "holds no MysqlFailoverGroup"},
		"OfStorage":    {args: "b --from orders --storage-file f", files: map[string]string{"f": "storage: {s3: {bucket: backups, secretName: keys}}"}, code: cli.ExitRefused, want: "--identity-secret NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, several()...)
			if tc.before != nil {
				tc.before(f)
			}
			dir := t.TempDir()
			for file, content := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			got := run(t, f, runOptions{}, append(append([]string{"restore"}, strings.Fields(tc.args)...), "-n", "shop")...)
			if got.code != tc.code || !strings.Contains(got.errOut, tc.want) || strings.Contains(got.errOut, "hush") {
				t.Errorf("exit code %d, want %d and %q: %+v", got.code, tc.code, tc.want, got)
			}
			if slices.ContainsFunc(f.did, func(what string) bool { return strings.HasPrefix(what, "create") }) || got.out != "" {
				t.Errorf("something was made, or printed: %v %q", f.did, got.out)
			}
		})
	}
}

// TestRestoreOfNothingLeft: with the group, its backups and its profile gone, files are enough.
func TestRestoreOfNothingLeft(t *testing.T) {
	f := withProfile(t)
	template := f.groups[0]
	template.Spec.Backup, template.Spec.DNS, f.groups = nil, &v1alpha1.DNSSpec{}, nil
	dir := t.TempDir()
	raw, err := yaml.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"orders.yaml": string(raw), "storage.yaml": "s3: {bucket: backups, secretName: keys, caSecretName: ca}\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	got := run(t, f, runOptions{}, strings.Fields("restore orders --from orders -f orders.yaml --storage-file storage.yaml --identity-secret identity --apply --wait=false -n shop")...)
	if got.code != cli.ExitHealthy || len(f.groups) != 1 {
		t.Fatalf("%+v", got)
	}
	want := &v1alpha1.InitFromBackupSpec{
		Storage:    &v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", SecretName: "keys", CASecretName: "ca"}},
		Encryption: &v1alpha1.RestoreEncryption{IdentitySecretName: "identity"}, From: &v1alpha1.RestoreFrom{Namespace: "shop", Group: "orders"},
	}
	if diff := cmp.Diff(want, f.groups[0].Spec.InitFromBackup); diff != "" || f.groups[0].Spec.DNS == nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The backups that the cluster knows of may lie in another storage than the one of the file, as after a move of the storage: their names would be
// looked for there in vain.
func TestRestoreFromAnotherStorage(t *testing.T) {
	for storage, tc := range map[string]struct{ want, says string }{
		"{s3: {bucket: backups, secretName: keys}}":            {"fresh", "fresh (Logical"},
		"{s3: {bucket: other, secretName: keys}}":              {"", "lie elsewhere"},
		"{s3: {bucket: backups, prefix: x, secretName: keys}}": {"", "the newest in the storage"},
	} {
		t.Run(storage, func(t *testing.T) {
			f := withProfile(t, several()...)
			t.Chdir(t.TempDir())
			if err := os.WriteFile("storage.yaml", []byte(storage), 0o600); err != nil {
				t.Fatal(err)
			}
			got := run(t, f, runOptions{}, strings.Fields("restore orders-2 --from orders --storage-file storage.yaml --identity-secret identity --check=false -n shop")...)
			var g v1alpha1.MysqlFailoverGroup
			if err := yaml.Unmarshal([]byte(got.out), &g); err != nil || got.code != cli.ExitHealthy {
				t.Fatalf("%s: %v: %+v", storage, err, got)
			}
			if g.Spec.InitFromBackup.Backup != tc.want || !strings.Contains(got.errOut, tc.says) {
				t.Errorf("%s: backup %q, said %s", storage, g.Spec.InitFromBackup.Backup, got.errOut)
			}
		})
	}
}

// A file may be that of a group that lives: its DNS name and its certificate stay its own. What the file has of another name may stay.
func TestRestoreFromAFileBesideTheLivingGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*backupAPI)
		edit   func(*v1alpha1.MysqlFailoverGroup)
		dns    string
		secret string
		says   string
	}{
		"lives": {secret: "orders-2-tls", says: "two groups would publish one name"},
		"may live": {before: func(f *backupAPI) {
			f.groups = nil
			f.refused["GET mysqlfailovergroups/orders"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, secret: "orders-2-tls", says: "two groups would publish one name"},
		"gone": {before: func(f *backupAPI) { f.groups = nil }, dns: "db.example.org", secret: "orders-tls"},
		"other names": {edit: func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.DNS.Name, g.Spec.TLS.SecretName = "new.example.org", "mine"
		}, dns: "new.example.org", secret: "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, several()...)
			f.groups[0].Spec.DNS = &v1alpha1.DNSSpec{Name: "db.example.org"}
			f.groups[0].Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls", IssuerRef: &v1alpha1.IssuerRef{Name: "ca"}}
			file := *f.groups[0].DeepCopy()
			if tc.edit != nil {
				tc.edit(&file)
			}
			if tc.before != nil {
				tc.before(f)
			}
			raw, err := yaml.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			if err := os.WriteFile("orders.yaml", raw, 0o600); err != nil {
				t.Fatal(err)
			}
			got := run(t, f, runOptions{}, strings.Fields("restore orders-2 --from orders -f orders.yaml --check=false -n shop")...)
			var g v1alpha1.MysqlFailoverGroup
			if err := yaml.Unmarshal([]byte(got.out), &g); err != nil || got.code != cli.ExitHealthy {
				t.Fatalf("%v: %+v", err, got)
			}
			dns := ""
			if g.Spec.DNS != nil {
				dns = g.Spec.DNS.Name
			}
			if dns != tc.dns || g.Spec.TLS.SecretName != tc.secret || !strings.Contains(got.errOut, tc.says) {
				t.Errorf("DNS %q, want %q; Secret %q, want %q; said %s", dns, tc.dns, g.Spec.TLS.SecretName, tc.secret, got.errOut)
			}
		})
	}
}

// TestRestoreUnderTheSameName: a place in a storage belongs to one group for good, so the new one reads there and writes elsewhere.
func TestRestoreUnderTheSameName(t *testing.T) {
	for want, s := range map[string]v1alpha1.BackupStorage{
		"s3://backups/a/since-20261103-120000": {S3: &v1alpha1.S3Storage{Bucket: "backups", Prefix: "a", SecretName: "keys"}},
		"gs://backups/since-20261103-120000":   {GCS: &v1alpha1.GCSStorage{Bucket: "backups", SecretName: "google"}},
		"azure://abc/since-20261103-120000":    {Azure: &v1alpha1.AzureStorage{Container: "abc", SecretName: "azure"}},
		"volume:v/since-20261103-120000":       {Volume: &v1alpha1.VolumeStorage{ClaimName: "v"}},
	} {
		f := withProfile(t)
		f.objects[secretsPath+"/google"] = corev1.Secret{Data: map[string][]byte{v1alpha1.BackupGCSCredentials: []byte("{}")}}
		f.objects[secretsPath+"/azure"] = corev1.Secret{Data: map[string][]byte{v1alpha1.BackupAccountName: []byte("n"), v1alpha1.BackupAccountKey: []byte("k")}}
		f.objects["/api/v1/namespaces/shop/persistentvolumeclaims/v"] = corev1.PersistentVolumeClaim{}
		f.groups[0].Spec.Backup.Profiles[0].Storage = s
		raw, err := yaml.Marshal(f.groups[0])
		if err != nil {
			t.Fatal(err)
		}
		f.groups = nil
		file := filepath.Join(t.TempDir(), "orders.yaml")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		got := run(t, f, runOptions{}, append(strings.Fields("restore orders --from orders -n shop --apply --wait=false -f"), file)...)
		if got.code != cli.ExitHealthy || len(f.groups) != 1 || !strings.Contains(got.errOut, "go to "+want) {
			t.Fatalf("%s: %+v", want, got)
		}
		spec := f.groups[0].Spec
		init := v1alpha1.InitFromBackupSpec{Storage: &s, Encryption: &v1alpha1.RestoreEncryption{IdentitySecretName: "identity"}, From: &v1alpha1.RestoreFrom{Namespace: "shop", Group: "orders"}}
		if diff := cmp.Diff(&init, spec.InitFromBackup); diff != "" || report.StorageWords(spec.Backup.Profiles[0].Storage) != want {
			t.Errorf("%s (-want +got):\n%s", report.StorageWords(spec.Backup.Profiles[0].Storage), diff)
		}
	}
}

func TestRestoreApply(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { t := metav1.NewTime(noon.Add(d)); return &t }
	in := func(phase v1alpha1.RestorePhase, message string) func(*v1alpha1.MysqlFailoverGroup) {
		return func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: phase, Site: "paris", Backup: "fresh", Progress: 37, Message: message, StartedAt: at(0), FinishedAt: at(412 * time.Second)}
			if phase == v1alpha1.RestoreFailed {
				g.Status.Restore.Reason = "WrongIdentity"
			}
		}
	}
	steps := func(all ...func(*v1alpha1.MysqlFailoverGroup)) []func(*v1alpha1.MysqlFailoverGroup) { return all }
	loaded := in(v1alpha1.RestoreCompleted, "")
	done := func(g *v1alpha1.MysqlFailoverGroup) {
		loaded(g)
		g.Status.ActiveSite, g.Status.Sites = "paris", []v1alpha1.SiteStatus{{Name: "paris", State: v1alpha1.SitePrimary}}
	}
	for name, tc := range map[string]struct {
		args   string
		then   []func(*v1alpha1.MysqlFailoverGroup)
		before func(*backupAPI)
		code   int
		want   string
	}{
		"Restored": {then: steps(in(v1alpha1.RestorePending, ""), in(v1alpha1.RestoreLoading, ""), done), code: cli.ExitHealthy, want: "restored: orders-2 has the data of backup fresh, on paris, after 6m52s; it accepts writes"},
		// The next command of a script finds a group that it can use.
		"Opens":      {then: steps(loaded, loaded, done), code: cli.ExitHealthy, want: "backup fresh is on paris, which opens for writes"},
		"NeverOpen":  {then: steps(loaded), code: cli.ExitHealthy, want: "it does not accept writes yet, and the other sites are copied from it: kubectl mfg status orders-2 -n shop -w"},
		"Progress":   {then: steps(in(v1alpha1.RestoreLoading, "table 3 of 9"), done), code: cli.ExitHealthy, want: "table 3 of 9 37%"},
		"LooksFor":   {then: steps(in(v1alpha1.RestorePending, ""), done), code: cli.ExitHealthy, want: "the backup is looked for and checked"},
		"JSON":       {args: "-o json", then: steps(done), code: cli.ExitHealthy, want: `"restoreSeconds": 412`},
		"NotWaiting": {args: "--wait=false", code: cli.ExitHealthy, want: "kubectl mfg status orders-2 -n shop -w"},
		"Failed":     {then: steps(in(v1alpha1.RestoreFailed, "none of the identities opens it")), code: cli.ExitRefused, want: "the restore failed (WrongIdentity): none of the identities opens it; nothing was opened"},
		"FailedJSON": {args: "-o json", then: steps(in(v1alpha1.RestoreFailed, "x")), code: cli.ExitRefused, want: `"reason": "WrongIdentity"`},
		"Recovers":   {then: steps(in(v1alpha1.RestoreFailed, "the bucket is away"), in(v1alpha1.RestoreLoading, ""), done), code: cli.ExitHealthy, want: "failed, and is tried again: the bucket is away"},
		"NotBegun": {then: steps(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRestoreReady, Status: metav1.ConditionFalse, Reason: "SecretMissing", Message: "no Secret keys"}}
		}, done), code: cli.ExitHealthy, want: "not begun: no Secret keys [SecretMissing]"},
		"Unheard":  {args: "--timeout 40s", code: cli.ExitTimeout, want: "not taken up yet"},
		"Waits":    {args: "--timeout 3s", then: steps(in(v1alpha1.RestoreLoading, "")), code: cli.ExitTimeout, want: "only the waiting ended, the restore continues"},
		"Deleted":  {then: steps(func(g *v1alpha1.MysqlFailoverGroup) { g.Name = "gone" }), code: cli.ExitRefused, want: "was deleted before it was restored"},
		"Replaced": {then: steps(func(g *v1alpha1.MysqlFailoverGroup) { g.UID = "other"; done(g) }), code: cli.ExitRefused, want: "was deleted before it was restored"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, several()...)
			if tc.before != nil {
				tc.before(f)
			}
			looks := 0
			got := run(t, f, runOptions{tick: func(int) {
				if looks < len(tc.then) && len(f.groups) > 1 {
					tc.then[looks](&f.groups[1])
				}
				looks++
			}}, append(strings.Fields("restore orders-2 --from orders -n shop --apply"), strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d and %q: %+v", got.code, tc.code, tc.want, got)
			}
			if diff := cmp.Diff([]string{"rehearse orders-2", "create group orders-2"}, f.did); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRestoreElsewhere: from another namespace, into this one.
func TestRestoreElsewhere(t *testing.T) {
	f := withProfile(t, several()...)
	for path, object := range f.objects {
		f.objects[strings.Replace(path, "/shop/", "/staging/", 1)] = object
	}
	got := run(t, f, runOptions{}, strings.Fields("restore orders --from mfg/orders --from-namespace shop --backup old -n staging -o json")...)
	if got.code != cli.ExitHealthy || !strings.Contains(got.out, `"namespace": "staging"`) || !strings.Contains(got.out, `"backup": "old"`) || !strings.Contains(got.out, `"namespace": "shop"`) {
		t.Errorf("%+v", got)
	}
}

// TestBackupCompletion: backups, profiles and groups are offered, each with a word on how it is.
func TestBackupCompletion(t *testing.T) {
	for args, want := range map[string][]string{
		"__complete backup create -n shop orders --profile ":                       {"nightly\tLogical to s3://backups", ":4", ""},
		"__complete backup create -n shop ":                                        {"orders\tRunning, active site paris", ":4", ""},
		"__complete backup verify -n shop orders ":                                 {"fresh\tCompleted, profile nightly", "old\tCompleted, profile nightly, verified", ":4", ""},
		"__complete backup show -n shop ":                                          {"fresh\tCompleted, profile nightly", "old\tCompleted, profile nightly, verified", ":4", ""},
		"__complete backup delete -n shop orders ":                                 {"fresh\tCompleted, profile nightly", "old\tCompleted, profile nightly, verified", ":4", ""},
		"__complete backup delete -n shop orders old ":                             {":4", ""},
		"__complete restore -n shop new --from ":                                   {"orders\tRunning, active site paris", ":4", ""},
		"__complete restore -n shop new --from orders --backup ":                   {"fresh\tCompleted, profile nightly", "old\tCompleted, profile nightly, verified", ":4", ""},
		"__complete restore -n shop new --from orders --profile ":                  {"nightly\tLogical to s3://backups", ":4", ""},
		"__complete restore -n other new --from-namespace shop --from x --backup ": {":4", ""},
	} {
		f := withProfile(t, ofOrders("old", -50*time.Hour, verified(v1alpha1.BackupPassed, "")), ofOrders("fresh", -2*time.Hour))
		got := runCompletion(t, f, strings.Split(args, " "))
		if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

// TestBackupExamplesParse: every command in an example of a verb below backup is one that the plugin takes.
func TestBackupExamplesParse(t *testing.T) {
	a := newApp(cli.Environment{IOStreams: discarded()})
	checked := 0
	for _, c := range a.backupCommand().Commands() {
		if !strings.Contains(c.Example, "kubectl mfg backup "+c.Name()) {
			t.Errorf("%s does not teach", c.Name())
		}
		for line := range strings.Lines(c.Example) {
			checkCommand(t, strings.TrimSpace(line))
			checked++
		}
	}
	if checked < 20 {
		t.Errorf("only %d lines were read", checked)
	}
}
