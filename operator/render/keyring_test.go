// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// encrypted gives every site the same wish for its keyring.
func encrypted(k render.Keyring) option {
	return func(in *render.Input) {
		tls(in)
		in.Install.EscrowURL = "https://mfg-auxiliary.mfg-system.svc:8443"
		in.Group.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true, Keyring: v1alpha1.KeyringSpec{
			DataFileDir: "/run/mysql-keyring", MysqldDir: "/usr/sbin", PluginDir: "/usr/lib64/mysql/plugin",
		}}
		in.Keyrings = map[string]render.Keyring{}
		for _, site := range in.Group.Spec.Sites {
			in.Keyrings[site.Name] = k
		}
	}
}

const (
	escrowSecret = "mysql-orders-paris-keyring-v3"
	tokenSecret  = "mysql-orders-paris-keyring-token"
	digest       = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// The wishes hold what the state does not need too: it must not get into the pod.
var (
	sealed = render.Keyring{
		Sealed: true, Work: v1alpha1.KeyringRotation, Secret: escrowSecret, Version: 3, Digest: digest, Token: tokenSecret, Round: "7",
	}
	unsealed = render.Keyring{
		Work: v1alpha1.KeyringRotation, Secret: escrowSecret, Version: 3, Digest: digest, Token: tokenSecret, Round: "7",
	}
	fresh = render.Keyring{Work: v1alpha1.KeyringBootstrap, Token: tokenSecret, Round: "1"}
)

func states() map[string]render.Keyring {
	return map[string]render.Keyring{"sealed": sealed, "unsealed": unsealed, "fresh": fresh}
}

func TestEncryptedPodIsRestricted(t *testing.T) {
	for name, k := range states() {
		t.Run(name, func(t *testing.T) { restricted(t, pod(input(everything, encrypted(k)))) })
	}
}

func volume(spec corev1.PodSpec, name string) *corev1.Volume {
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == name {
			return &spec.Volumes[i]
		}
	}
	return nil
}

// at returns the mounts of a container that cover a path.
func at(c corev1.Container, path string) []corev1.VolumeMount {
	return slices.DeleteFunc(slices.Clone(c.VolumeMounts), func(m corev1.VolumeMount) bool {
		return m.MountPath != path && !strings.HasPrefix(path, m.MountPath+"/")
	})
}

// I18: a sealed pod has no token and no place where a keyring could be written, even if the wish says otherwise.
func TestI18SealedPodHasNoTokenAndNoWritableKeyring(t *testing.T) {
	spec := pod(input(encrypted(sealed)))
	for _, v := range spec.Volumes {
		// The volume of the socket and those for what is temporary are in memory in every pod; the API refuses a keyring path in them.
		if v.EmptyDir != nil && v.EmptyDir.Medium != "" && !slices.Contains([]string{"run", "tmp", "logs"}, v.Name) {
			t.Errorf("volume %s is in memory", v.Name)
		}
		if v.Secret != nil && v.Secret.SecretName == tokenSecret {
			t.Errorf("volume %s is the token", v.Name)
		}
	}
	v := volume(spec, "keyring")
	if v == nil || v.Secret == nil || v.Secret.SecretName != escrowSecret {
		t.Fatalf("the keyring is %+v", v)
	}
	if v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o444 {
		t.Errorf("its mode is %v: mysqld must read it as any user, and write it as none", v.Secret.DefaultMode)
	}
	for name, c := range containers(spec) {
		mounts := at(c, "/run/mysql-keyring/keyring")
		if name == render.ContainerInstall {
			if len(mounts) != 0 {
				t.Errorf("%s mounts the keyring", name)
			}
			continue
		}
		if len(mounts) != 1 || mounts[0].Name != "keyring" || !mounts[0].ReadOnly || mounts[0].SubPath != "" {
			t.Errorf("%s has at the keyring's place: %+v", name, mounts)
		}
		for _, e := range c.Env {
			if strings.Contains(e.Name, "ESCROW") || strings.Contains(e.Name, "SEED") || strings.Contains(e.Name, "ROUND") {
				t.Errorf("%s knows %s", name, e.Name)
			}
		}
	}
	if _, has := render.Deployment(input(encrypted(sealed)), input().Group.Spec.Sites[0]).Spec.Template.Annotations[v1alpha1.AnnotationKeyringRound]; has {
		t.Error("the round of an unseal is on a sealed pod")
	}
}

func TestUnsealedKeyringIsInMemory(t *testing.T) {
	spec := pod(input(encrypted(unsealed)))
	v := volume(spec, "keyring")
	if v == nil || v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory || v.EmptyDir.SizeLimit == nil ||
		v.EmptyDir.SizeLimit.Value() != 2<<20 {
		t.Fatalf("the keyring is %+v", v)
	}
	readOnly := map[string]bool{}
	for name, c := range containers(spec) {
		for _, m := range at(c, "/run/mysql-keyring/keyring") {
			readOnly[name] = m.ReadOnly
		}
	}
	want := map[string]bool{render.ContainerBootstrap: false, render.ContainerMySQL: false, render.ContainerSidecar: true}
	if diff := cmp.Diff(want, readOnly); diff != "" {
		t.Errorf("who may only read it (-want +got):\n%s", diff)
	}
}

// I14: bootstrap tells by the round what it was ordered to give up from what came into being since. Every unseal has its own, also
// in a group that is made again over the same volumes and counts from one.
func TestEveryUnsealHasItsOwnRoundI14(t *testing.T) {
	round := func(keyring render.Keyring, change ...option) string {
		c := containers(pod(input(append(change, encrypted(keyring))...)))
		bootstrap, sidecar := envOf(c[render.ContainerBootstrap])["MFG_KEYRING_ROUND"], envOf(c[render.ContainerSidecar])["MFG_KEYRING_ROUND"]
		if bootstrap == "" || bootstrap != sidecar {
			t.Errorf("bootstrap is in round %q, the sidecar in %q", bootstrap, sidecar)
		}
		return bootstrap
	}
	next, again := unsealed, func(in *render.Input) { in.Group.UID = "again" }
	next.Round = "8"
	if first := round(unsealed); first != round(unsealed) || first == round(next) || first == round(unsealed, again) {
		t.Errorf("%s: the next round is %s, that of another group %s", first, round(next), round(unsealed, again))
	}
}

// The seed is for the init container alone, the token for the sidecar alone.
func TestWhoReadsWhichSecretOfAKeyring(t *testing.T) {
	tests := map[string]struct {
		keyring                    render.Keyring
		bootstrap, sidecar, mysqld []string
	}{
		"sealed": {
			sealed, []string{escrowSecret + "/keyring"}, []string{escrowSecret + "/keyring"}, []string{escrowSecret + "/keyring"},
		},
		"unsealed": {unsealed, []string{escrowSecret + "/keyring"}, []string{tokenSecret + "/token"}, nil},
		"fresh":    {fresh, nil, []string{tokenSecret + "/token"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := pod(input(encrypted(tt.keyring)))
			for container, want := range map[string][]string{
				render.ContainerInstall: nil, render.ContainerBootstrap: tt.bootstrap, render.ContainerSidecar: tt.sidecar, render.ContainerMySQL: tt.mysqld,
			} {
				got := slices.DeleteFunc(secretsOf(spec, containers(spec)[container]), func(s string) bool { return !strings.Contains(s, "keyring") })
				if diff := cmp.Diff(want, got, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
					t.Errorf("%s (-want +got):\n%s", container, diff)
				}
			}
		})
	}
}

// A container that starts again looks its files up in what the ConfigMap is by then: it must find those of its own state.
func TestStatesDoNotShareAComponentConfig(t *testing.T) {
	site := input().Group.Spec.Sites[0]
	data := render.ConfigMap(input(encrypted(sealed)), site).Data
	for name, k := range states() {
		if diff := cmp.Diff(data, render.ConfigMap(input(encrypted(k)), site).Data); diff != "" {
			t.Errorf("the ConfigMap changes with the state (%s):\n%s", name, diff)
		}
		spec := pod(input(encrypted(k)))
		for _, container := range []string{render.ContainerBootstrap, render.ContainerMySQL} {
			var config struct {
				Path     string `json:"path"`
				ReadOnly *bool  `json:"read_only"`
			}
			mounts := at(containers(spec)[container], "/usr/lib64/mysql/plugin/component_keyring_file.cnf")
			if len(mounts) != 1 || !mounts[0].ReadOnly || mounts[0].Name != "config" {
				t.Fatalf("%s, %s: component configuration %+v", name, container, mounts)
			}
			if err := json.Unmarshal([]byte(data[mounts[0].SubPath]), &config); err != nil {
				t.Fatal(err)
			}
			if config.Path != "/run/mysql-keyring/keyring" || config.ReadOnly == nil || *config.ReadOnly != k.Sealed {
				t.Errorf("%s, %s: %s", name, container, data[mounts[0].SubPath])
			}
			manifest := at(containers(spec)[container], "/usr/sbin/mysqld.my")
			if len(manifest) != 1 || !manifest[0].ReadOnly || data[manifest[0].SubPath] != `{"components":"file://component_keyring_file"}`+"\n" {
				t.Errorf("%s, %s: manifest %+v", name, container, manifest)
			}
		}
	}
}

func TestKeyringDirectories(t *testing.T) {
	elsewhere := func(in *render.Input) {
		in.Group.Spec.EncryptionAtRest.Keyring = v1alpha1.KeyringSpec{DataFileDir: "/run/k", MysqldDir: "/opt/mysql/bin", PluginDir: "/opt/mysql/plugin"}
	}
	spec := pod(input(encrypted(sealed), elsewhere))
	for _, path := range []string{"/run/k/keyring", "/opt/mysql/bin/mysqld.my", "/opt/mysql/plugin/component_keyring_file.cnf"} {
		if len(at(containers(spec)[render.ContainerMySQL], path)) != 1 {
			t.Errorf("nothing is mounted for %s", path)
		}
	}
	if env := envOf(containers(spec)[render.ContainerSidecar]); env["MFG_KEYRING_FILE"] != "/run/k/keyring" {
		t.Errorf("the sidecar looks at %s", env["MFG_KEYRING_FILE"])
	}
}

// TestOnlyWhatAnUnsealedSiteHasIsRendered: each of what the wish may lack, alone; and what is there although nobody asks for encryption
// any more, as while it is turned off, keeps its place.
func TestOnlyWhatAnUnsealedSiteHasIsRendered(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*render.Keyring)
		lacks   string
		accepts string
	}{
		"all":           {func(*render.Keyring) {}, "-", ""},
		"no token":      {func(k *render.Keyring) { k.Token = "" }, "ESCROW", ""},
		"no round":      {func(k *render.Keyring) { k.Round = "" }, "ROUND", ""},
		"no seed":       {func(k *render.Keyring) { k.Secret = "" }, "SEED", ""},
		"data in clear": {func(k *render.Keyring) { k.AcceptPlain = true }, "-", "true"},
	} {
		k := unsealed
		tt.change(&k)
		spec := pod(input(encrypted(k)))
		has := map[string]bool{"ESCROW": volume(spec, "escrow-token") != nil, "SEED": volume(spec, "keyring-seed") != nil, "ROUND": false}
		env := envOf(containers(spec)[render.ContainerSidecar])
		for what := range has {
			for variable := range env {
				has[what] = has[what] || strings.Contains(variable, what)
			}
			if has[what] != (what != tt.lacks) {
				t.Errorf("%s: the pod has %s: %t", name, what, has[what])
			}
		}
		if mounted := len(at(containers(spec)[render.ContainerSidecar], render.EscrowDir)) > 0; mounted != (tt.lacks != "ESCROW") {
			t.Errorf("%s: the token is mounted: %t", name, mounted)
		}
		if got := env["MFG_KEYRING_SEED_VERSION"]; got != map[bool]string{true: "3"}[tt.lacks != "SEED"] {
			t.Errorf("%s: the seed is version %q", name, got)
		}
		if got := env["MFG_KEYRING_ACCEPT_PLAIN"]; got != tt.accepts {
			t.Errorf("%s: data in the clear is accepted: %q", name, got)
		}
	}
	off := func(in *render.Input) { in.Group.Spec.EncryptionAtRest = nil }
	for _, path := range []string{"/run/mysql-keyring/keyring", "/usr/sbin/mysqld.my", "/usr/lib64/mysql/plugin/component_keyring_file.cnf"} {
		if len(at(containers(pod(input(encrypted(sealed), off)))[render.ContainerMySQL], path)) != 1 {
			t.Errorf("nothing is mounted for %s", path)
		}
	}
}

func envOf(c corev1.Container) map[string]string {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	return env
}

func TestKeyringSpecHash(t *testing.T) {
	hash := func(options ...option) string {
		in := input(options...)
		return render.Deployment(in, in.Group.Spec.Sites[0]).Annotations[v1alpha1.AnnotationSpecHash]
	}
	change := func(k render.Keyring, edit func(*render.Keyring)) option {
		edit(&k)
		return encrypted(k)
	}
	for name, edit := range map[string]func(*render.Keyring){
		"work":   func(k *render.Keyring) { k.Work = "" },
		"token":  func(k *render.Keyring) { k.Token = "" },
		"round":  func(k *render.Keyring) { k.Round = "8" },
		"digest": func(k *render.Keyring) { k.Digest = "" },
	} {
		if hash(change(sealed, edit)) != hash(encrypted(sealed)) {
			t.Errorf("%s would restart a sealed pod", name)
		}
	}
	seen := map[string]string{hash(tls): "not encrypted"}
	for name, o := range map[string]option{
		"sealed": encrypted(sealed), "unsealed": encrypted(unsealed), "fresh": encrypted(fresh),
		"next round":        change(unsealed, func(k *render.Keyring) { k.Round = "8" }),
		"sealed with other": change(sealed, func(k *render.Keyring) { k.Secret = "mysql-orders-paris-keyring-v2" }),
	} {
		if other, taken := seen[hash(o)]; taken {
			t.Errorf("%s does not replace the pod of %s", name, other)
		}
		seen[hash(o)] = name
	}
}

func TestCoverageSettings(t *testing.T) {
	all := map[string]string{
		"default_table_encryption": "ON", "table_encryption_privilege_check": "ON", "innodb_redo_log_encrypt": "ON",
		"innodb_undo_log_encrypt": "ON", "binlog_encryption": "ON",
	}
	off := new(false)
	tests := map[string]struct {
		coverage v1alpha1.CoverageSpec
		off      string
		system   string
	}{
		"all":       {v1alpha1.CoverageSpec{}, "", "true"},
		"tables":    {v1alpha1.CoverageSpec{Tables: off}, "default_table_encryption", "true"},
		"privilege": {v1alpha1.CoverageSpec{PrivilegeCheck: off}, "table_encryption_privilege_check", "true"},
		"redo":      {v1alpha1.CoverageSpec{RedoLog: off}, "innodb_redo_log_encrypt", "true"},
		"undo":      {v1alpha1.CoverageSpec{UndoLog: off}, "innodb_undo_log_encrypt", "true"},
		"binlog":    {v1alpha1.CoverageSpec{BinaryLog: off}, "binlog_encryption", "true"},
		"system":    {v1alpha1.CoverageSpec{SystemTablespace: off}, "", "false"},
		"all, said": {v1alpha1.CoverageSpec{Tables: new(true), RedoLog: new(true), SystemTablespace: new(true)}, "", "true"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(encrypted(sealed), conf("default-table-encryption", "1", "binlog_encrypt", "OFF"))
			in.Group.Spec.EncryptionAtRest.Coverage = tt.coverage
			got := settings(t, in)
			for key, want := range all {
				if key == tt.off {
					want = "OFF"
				}
				if got[key] != want {
					t.Errorf("%s=%q, want %s", key, got[key], want)
				}
			}
			if got["default-table-encryption"] != "" || got["binlog_encrypt"] != "" {
				t.Errorf("settings of the user got in: %v", got)
			}
			if env := envOf(containers(pod(in))[render.ContainerSidecar]); env["MFG_COVERAGE_SYSTEM_TABLESPACE"] != tt.system {
				t.Errorf("the sidecar is told %q of the system tablespace", env["MFG_COVERAGE_SYSTEM_TABLESPACE"])
			}
		})
	}
}

// What MySQL writes in the clear lies where neither a volume nor a snapshot of it has it.
func TestLeftoversAreOffTheDataVolume(t *testing.T) {
	in := input(encrypted(sealed), conf("slow_query_log_file", "/var/lib/mysql/slow.log", "innodb_tmpdir", "/var/lib/mysql/t"))
	got := settings(t, in)
	for _, key := range []string{"innodb_temp_tablespaces_dir", "innodb_temp_data_file_path", "general_log_file", "slow_query_log_file", "tmpdir"} {
		if !strings.HasPrefix(got[key], "/tmp") {
			t.Errorf("%s=%q", key, got[key])
		}
	}
	if got["log_output"] != "FILE" || got["loose_innodb_change_buffering"] != "none" || got["innodb_tmpdir"] != "" || got["log_error"] != "" {
		t.Errorf("settings %v", got)
	}
	if got["binlog_rotate_encryption_master_key_at_startup"] != "OFF" {
		t.Error("a start of mysqld would rotate the key of the binary log, which a sealed keyring cannot take")
	}
}

func TestCoverageSettingsAreIgnoredInSpec(t *testing.T) {
	for key, encryptedOnly := range map[string]bool{
		"default_table_encryption": true, "table-encryption-privilege-check": true, "INNODB_REDO_LOG_ENCRYPT": true,
		"loose_innodb_undo_log_encrypt": true, "skip-binlog-encryption": true, "innodb_change_buffering": true, "log_output": true,
		"innodb_status_file": true, "max_connections": false, "slow_query_log": false, "general_log": false, "long_query_time": false,
	} {
		if got := render.IgnoredKeys(input(conf(key, "OFF"))); len(got) != 0 {
			t.Errorf("%s is ignored without encryption: %v", key, got)
		}
		if got := render.IgnoredKeys(input(encrypted(sealed), conf(key, "OFF"))); (len(got) == 1) != encryptedOnly {
			t.Errorf("%s with encryption: ignored are %v", key, got)
		}
	}
}
