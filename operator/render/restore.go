// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Restore has the first site of a new group loaded from a backup.
type Restore struct {
	Site string
	// From is where the backup is.
	From BackupAccess
	// Backup is its name; empty takes the newest, which is chosen once and noted on the volume.
	Backup string
	// PointInTime is where in the history the restore stops; nil stops at the backup.
	PointInTime *v1alpha1.PointInTime
}

// Containers of the pod that is restored, beside those of every pod.
const (
	ContainerLoad        = v1alpha1.ContainerLoad
	ContainerInstallLoad = "install-backup"
)

const (
	// restoredSuffix is where `backup load` makes the data directory that `sidecar bootstrap` takes.
	restoredSuffix = ".restored"
	// loadTimeout is the longest that a profile may give a backup. A load that hangs is seen by its progress; one that is ended begins again
	// from nothing.
	loadTimeout = 168 * time.Hour
)

// restores tells whether the pod of a site begins with a backup.
func (in Input) restores(site string) bool { return in.Restore != nil && in.Restore.Site == site }

// loading are the init containers that bring a backup onto the volume. They are in the very pod that becomes the site: the keyring of an
// encrypted one is in its memory and nowhere else. In a pod that starts again they find the data there, and leave it as it is.
func loading(in Input, site v1alpha1.Site) []corev1.Container {
	if !in.restores(site.Name) {
		return nil
	}
	place := BackupStorage(in.Restore.From)
	load := corev1.Container{
		Name:            ContainerLoad,
		Image:           in.Group.Spec.Image,
		ImagePullPolicy: in.Group.Spec.ImagePullPolicy,
		Command:         []string{backupBinary, "load"},
		Env:             append([]corev1.EnvVar{{Name: wire.EnvBackupConfig, Value: loadConfig(in, site, place).Text()}}, goMemory(site.Resources)...),
		Resources:       mysqlResources(site),
		SecurityContext: containerSecurity(),
		VolumeMounts: append(withKeyring(in, site.Name, ContainerLoad, withLogs(in, site.Name, withTLS(in,
			corev1.VolumeMount{Name: volumeData, MountPath: volumeDir},
			corev1.VolumeMount{Name: volumeRun, MountPath: runDir},
			corev1.VolumeMount{Name: volumeTmp, MountPath: tmpDir},
			corev1.VolumeMount{Name: volumeBin, MountPath: binDir, ReadOnly: true},
			corev1.VolumeMount{Name: volumeConfig, MountPath: ConfigDir, ReadOnly: true},
			corev1.VolumeMount{Name: volumeAccounts, MountPath: AccountsDir, ReadOnly: true},
		)...)), place.Mounts...),
	}
	install := corev1.Container{
		Name:            ContainerInstallLoad,
		Image:           in.Install.BackupImage,
		ImagePullPolicy: in.Install.BackupPullPolicy,
		Args:            []string{"install", backupBinary},
		Resources:       sidecarResources(in),
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeBin, MountPath: binDir}},
	}
	return []corev1.Container{install, load}
}

const backupBinary = binDir + "/backup"

// loadConfig is what the program is told. Passwords and keys are files.
func loadConfig(in Input, site v1alpha1.Site, place BackupPlace) wire.BackupConfig {
	c := wire.BackupConfig{
		Bucket: place.Bucket, Backup: in.Restore.Backup, GroupUID: string(in.Group.UID), Site: site.Name, IdentityFile: place.IdentityFile,
		Server: wire.BackupServer{
			Dir: DataDir + restoredSuffix, StateDir: StateDir, RunDir: runDir, TmpDir: tmpDir, DefaultsFile: path.Join(ConfigDir, ConfigKeyMyCnf),
		},
		AccountsDir: AccountsDir, RequireTLS: in.Group.TLSRequired(), TimeoutSeconds: int64(loadTimeout / time.Second),
		ResultFile: corev1.TerminationMessagePathDefault, StorageDigest: in.Restore.From.Storage.Digest(place.Bucket.Namespace, place.Bucket.Group),
	}
	if p := in.Restore.PointInTime; p != nil {
		c.PointInTime = &wire.BackupPointInTime{GTID: p.GTID, BeforeGTID: p.BeforeGTID, BeforeFailover: p.BeforeFailover, Latest: p.Latest != nil && *p.Latest}
		if p.Time != nil {
			c.PointInTime.Time = new(p.Time.UTC())
		}
	}
	if in.encrypted(site.Name) {
		c.Server.KeyringFile = path.Join(keyringDirs(in).DataFileDir, KeyringFile)
	}
	return c
}

// goMemory has Go stay below half of a container's memory: the other half is for the mysqld beside it.
func goMemory(r corev1.ResourceRequirements) []corev1.EnvVar {
	if limit := r.Limits.Memory().Value(); limit > 0 {
		return []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit/2, 10)}}
	}
	return nil
}

// restoreEnv keeps bootstrap from making an empty database where a backup belongs.
func restoreEnv(in Input, site v1alpha1.Site) []corev1.EnvVar {
	if !in.restores(site.Name) {
		return nil
	}
	return []corev1.EnvVar{{Name: "MFG_RESTORE", Value: "true"}}
}

func restoreVolumes(in Input, site v1alpha1.Site) []corev1.Volume {
	if !in.restores(site.Name) {
		return nil
	}
	return BackupStorage(in.Restore.From).Volumes
}
