// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"maps"
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Keyring is how the keyring of one site has to be there. A site without one is not encrypted.
type Keyring struct {
	// Sealed has the escrow Secret projected read-only; otherwise the keyring lies in memory and can be written.
	Sealed bool
	// Work is why it can be written. What a sealed pod does not need is not rendered for it, so that it never rolls a pod.
	Work v1alpha1.KeyringWork
	// Secret is the escrow Secret to project, or to seed from; empty starts with a fresh keyring. Digest is its content's.
	Secret  string
	Version int64
	Digest  string
	// Token is the Secret with the bearer token for the escrow endpoint.
	Token string
	// Round changes with every unseal, and with nothing else: the keyring in memory of the pod before must not be taken for this
	// one's, and bootstrap tells by it what was there before the unseal from what came of it.
	Round string
	// AcceptPlain lets the site go on from data in the clear on a volume that status knew nothing of.
	AcceptPlain bool
}

// Keys of the keyring's part of a site's ConfigMap. The component's configuration is there twice,
// because a container that starts again looks its files up again in what the ConfigMap is by then: each state has a key
// of its own that never changes, and a pod mounts that of the state which it was made for.
const (
	ConfigKeyKeyringManifest  = "keyring-manifest.json"
	ConfigKeyKeyringComponent = "keyring-component.json"
	ConfigKeyKeyringUnsealed  = "keyring-component-unsealed.json"
)

// Where the keyring's parts lie in the pod.
const (
	KeyringFile    = "keyring"
	KeyringSeedDir = "/etc/mfg-keyring-seed"
	EscrowDir      = "/etc/mfg-escrow"

	manifestFile        = "mysqld.my"
	componentConfigFile = "component_keyring_file.cnf"
)

const (
	volumeKeyring     = "keyring"
	volumeKeyringSeed = "keyring-seed"
	volumeEscrowToken = "escrow-token"
)

// keyringMode lets mysqld read the projected keyring under any user, and write it under none.
const keyringMode int32 = 0o444

// keyringLimit holds the largest keyring that goes into escrow, MySQL's copy of it while it is rewritten, and the seed.
const keyringLimit = "2Mi"

func (in Input) encrypted(site string) bool {
	_, is := in.Keyrings[site]
	return is
}

// keyringDirs are the directories of spec.encryptionAtRest.keyring, or their defaults.
func keyringDirs(in Input) v1alpha1.KeyringSpec {
	var dirs v1alpha1.KeyringSpec
	if e := in.Group.Spec.EncryptionAtRest; e != nil {
		dirs = e.Keyring
	}
	for dir, fallback := range map[*string]string{
		&dirs.DataFileDir: "/run/mysql-keyring", &dirs.MysqldDir: "/usr/sbin", &dirs.PluginDir: "/usr/lib64/mysql/plugin",
	} {
		if *dir == "" {
			*dir = fallback
		}
	}
	return dirs
}

// keyringConfig is the keyring's part of a site's ConfigMap. It is the same in every state.
func keyringConfig(in Input) map[string]string {
	file := path.Join(keyringDirs(in).DataFileDir, KeyringFile)
	return map[string]string{
		ConfigKeyKeyringManifest:  jsonText(map[string]any{"components": "file://component_keyring_file"}),
		ConfigKeyKeyringComponent: jsonText(map[string]any{"path": file, "read_only": true}),
		ConfigKeyKeyringUnsealed:  jsonText(map[string]any{"path": file, "read_only": false}),
	}
}

func jsonText(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic("impossible: strings and booleans always encode: " + err.Error())
	}
	return string(body) + "\n"
}

// keyringVolumes: of a sealed site the escrow Secret alone. I18: no token, whatever the wish says, and nothing that
// could be written in the keyring's place.
func keyringVolumes(in Input, site string) []corev1.Volume {
	keyring, encrypted := in.Keyrings[site]
	if !encrypted {
		return nil
	}
	if keyring.Sealed {
		return []corev1.Volume{secretVolume(volumeKeyring, keyring.Secret, keyringMode, items(v1alpha1.KeyringKey, KeyringFile))}
	}
	volumes := []corev1.Volume{memory(volumeKeyring, resource.MustParse(keyringLimit))}
	if keyring.Secret != "" {
		volumes = append(volumes, secretVolume(volumeKeyringSeed, keyring.Secret, secretMode, items(v1alpha1.KeyringKey, KeyringFile)))
	}
	if keyring.Token != "" {
		files := items(v1alpha1.KeyringTokenKey, v1alpha1.KeyringTokenKey)
		if in.Install.EscrowOwn {
			files = append(files, items(v1alpha1.KeyringTokenCA, v1alpha1.KeyringTokenCA)...)
		}
		volumes = append(volumes, secretVolume(volumeEscrowToken, keyring.Token, secretMode, files))
	}
	return volumes
}

func secretVolume(name, secret string, mode int32, items []corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: &mode, Items: items,
	}}}
}

// withKeyring adds what a container sees of the keyring. The containers that run mysqld get its two files mounted one by
// one into directories of the image.
func withKeyring(in Input, site, container string, mounts []corev1.VolumeMount) []corev1.VolumeMount {
	keyring, encrypted := in.Keyrings[site]
	if !encrypted {
		return mounts
	}
	dirs := keyringDirs(in)
	runsMysqld := container != ContainerSidecar
	mounts = append(mounts, corev1.VolumeMount{
		Name: volumeKeyring, MountPath: dirs.DataFileDir, ReadOnly: keyring.Sealed || !runsMysqld,
	})
	if runsMysqld {
		component := ConfigKeyKeyringComponent
		if !keyring.Sealed {
			component = ConfigKeyKeyringUnsealed
		}
		mounts = append(mounts,
			configFile(path.Join(dirs.MysqldDir, manifestFile), ConfigKeyKeyringManifest),
			configFile(path.Join(dirs.PluginDir, componentConfigFile), component),
		)
	}
	if keyring.Sealed {
		return mounts
	}
	if container == ContainerBootstrap && keyring.Secret != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeKeyringSeed, MountPath: KeyringSeedDir, ReadOnly: true})
	}
	if container == ContainerSidecar && keyring.Token != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeEscrowToken, MountPath: EscrowDir, ReadOnly: true})
	}
	return mounts
}

func configFile(file, key string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volumeConfig, MountPath: file, SubPath: key, ReadOnly: true}
}

// keyringEnv tells the sidecar and bootstrap of the keyring; what belongs to the unsealed state is absent in the other.
func keyringEnv(in Input, site string) []corev1.EnvVar {
	keyring, encrypted := in.Keyrings[site]
	if !encrypted {
		return nil
	}
	env := []corev1.EnvVar{
		keyringFileEnv(in),
		{Name: "MFG_KEYRING_SEALED", Value: strconv.FormatBool(keyring.Sealed)},
		{Name: "MFG_COVERAGE_SYSTEM_TABLESPACE", Value: strconv.FormatBool(isOn(coverage(in).SystemTablespace))},
	}
	if keyring.Sealed {
		return env
	}
	env = append(env, corev1.EnvVar{Name: "MFG_KEYRING_WORK", Value: string(keyring.Work)})
	if keyring.Round != "" {
		// A group that is made again counts from one: what the volume remembers of the former group's rounds must not be met again.
		env = append(env, corev1.EnvVar{Name: "MFG_KEYRING_ROUND", Value: string(in.Group.UID) + "/" + keyring.Round})
	}
	if keyring.AcceptPlain {
		env = append(env, corev1.EnvVar{Name: "MFG_KEYRING_ACCEPT_PLAIN", Value: "true"})
	}
	if keyring.Secret != "" {
		env = append(env,
			corev1.EnvVar{Name: "MFG_KEYRING_SEED", Value: path.Join(KeyringSeedDir, KeyringFile)},
			corev1.EnvVar{Name: "MFG_KEYRING_SEED_DIGEST", Value: keyring.Digest}, corev1.EnvVar{Name: "MFG_KEYRING_SEED_VERSION", Value: strconv.FormatInt(keyring.Version, 10)},
		)
	}
	if keyring.Token != "" {
		believed := TLSDir + "/ca.crt"
		if in.Install.EscrowOwn {
			believed = path.Join(EscrowDir, v1alpha1.KeyringTokenCA)
		}
		env = append(env,
			corev1.EnvVar{Name: "MFG_ESCROW_URL", Value: in.Install.EscrowURL},
			corev1.EnvVar{Name: "MFG_ESCROW_CA", Value: believed},
			corev1.EnvVar{Name: "MFG_ESCROW_TOKEN_FILE", Value: path.Join(EscrowDir, v1alpha1.KeyringTokenKey)},
		)
	}
	return env
}

func keyringFileEnv(in Input) corev1.EnvVar {
	return corev1.EnvVar{Name: "MFG_KEYRING_FILE", Value: path.Join(keyringDirs(in).DataFileDir, KeyringFile)}
}

// keyringAnnotations are those of the pod template.
func keyringAnnotations(in Input, site string) map[string]string {
	keyring := in.Keyrings[site]
	if keyring.Sealed || keyring.Round == "" {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationKeyringRound: keyring.Round}
}

func coverage(in Input) v1alpha1.CoverageSpec {
	if e := in.Group.Spec.EncryptionAtRest; e != nil {
		return e.Coverage
	}
	return v1alpha1.CoverageSpec{}
}

// isOn is what a flag of coverage says: nothing means true.
func isOn(set *bool) bool { return set == nil || *set }

// encryptedSettings are owned in the option file of an encrypted site.
func encryptedSettings(in Input, site string) map[string]string {
	set := coverageSettings(in)
	maps.Copy(set, leftovers)
	maps.Copy(set, logFiles(in, site))
	return set
}

// leftovers keep what MySQL writes in the clear, whatever the coverage, off the data volume: temporary tables with their
// undo log, general and slow log (in a table they are a CSV file), index entries in the change buffer.
var leftovers = map[string]string{
	"innodb_temp_tablespaces_dir":   tmpDir,
	"innodb_temp_data_file_path":    tmpDir + "/ibtmp1:12M:autoextend",
	"loose_innodb_change_buffering": "none",
	"log_output":                    "FILE",
}

// leftAlone are settings that an encrypted site leaves at MySQL's own value: with another they write in the clear beside
// the data.
var leftAlone = []string{"innodb_tmpdir", "innodb_status_file", "innodb_file_per_table", "innodb_directories", "core_file"}

// coverageSettings are written whether their flag is set or not: the flag governs, not a default of MySQL.
func coverageSettings(in Input) map[string]string {
	c := coverage(in)
	set := map[string]string{}
	for key, value := range map[string]*bool{
		"default_table_encryption":         c.Tables,
		"table_encryption_privilege_check": c.PrivilegeCheck,
		"innodb_redo_log_encrypt":          c.RedoLog,
		"innodb_undo_log_encrypt":          c.UndoLog,
		"binlog_encryption":                c.BinaryLog,
	} {
		set[key] = "OFF"
		if isOn(value) {
			set[key] = "ON"
		}
	}
	return set
}
