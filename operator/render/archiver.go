// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// ContainerArchiver archives the binary logs of its site while that is active. It is in the pods of groups with backup.pitr alone.
const ContainerArchiver = "archiver"

const (
	// archiverDir is in memory, has the status of the archiver, and is not the run directory: there the deadline of the fence is.
	archiverDir        = "/run/mfg-archive"
	archiverAccountDir = "/etc/mfg-archive/account"
	archiverStatus     = archiverDir + "/archiver.json"
	archiverRoom       = "8Mi"
	accountBackup      = "mfg_backup" // AccountBackup of internal/mysql

	volumeArchiver        = "archive"
	volumeArchiverAccount = "archive-account"

	defaultInterval = 30 * time.Second
	binlogIndex     = "binlog.index"
)

// archiveProfile is the profile whose storage takes the binary logs; false in a group that has none archived, and as long as the operator
// does not know the image of the program.
func archiveProfile(in Input) (v1alpha1.BackupProfile, bool) {
	p, ok := ArchiveProfile(&in.Group.Spec)
	return p, ok && in.Install.BackupImage != ""
}

// ArchiveProfile is the profile whose storage takes the binary logs of a group; false if none are to be archived. A storage of kind volume
// takes none: one that is away would keep MySQL from starting and from ending.
func ArchiveProfile(spec *v1alpha1.MysqlFailoverGroupSpec) (v1alpha1.BackupProfile, bool) {
	if spec.Backup == nil || spec.Backup.PITR == nil || !spec.Backup.PITR.Enabled {
		return v1alpha1.BackupProfile{}, false
	}
	for _, p := range spec.Backup.Profiles {
		if p.Name == spec.Backup.PITR.Profile {
			return p, p.Storage.Volume == nil
		}
	}
	return v1alpha1.BackupProfile{}, false
}

// ArchiveInterval is how often what was written is uploaded.
func ArchiveInterval(p *v1alpha1.PITRSpec) time.Duration {
	if p == nil || p.Interval.Duration <= 0 {
		return defaultInterval
	}
	return p.Interval.Duration
}

// archivePlace is how the pod of a site reaches the archive. The volumes have names of their own: the pod of a site that begins with a
// backup has those of BackupStorage too. Secrets are optional, so that one that is missing keeps no MySQL from starting.
func archivePlace(in Input, p v1alpha1.BackupProfile) BackupPlace {
	storage := *p.Storage.DeepCopy()
	if secret := in.Group.Spec.Backup.PITR.SecretName; secret != "" {
		switch {
		case storage.S3 != nil:
			storage.S3.SecretName = secret
		case storage.GCS != nil:
			storage.GCS.SecretName = secret
		case storage.Azure != nil:
			storage.Azure.SecretName = secret
		}
	}
	place := BackupStorage(BackupAccess{Storage: storage, Namespace: in.Group.Namespace, Group: in.Group.Name})
	own := func(name string) string { return volumeArchiver + "-" + strings.TrimPrefix(name, "backup-") }
	for i := range place.Volumes {
		place.Volumes[i].Name = own(place.Volumes[i].Name)
	}
	for i := range place.Mounts {
		place.Mounts[i].Name = own(place.Mounts[i].Name)
	}
	return place
}

// archiver is an ordinary container beside mysqld, and no init container that goes on: the kubelet starts mysqld whatever becomes of it. It
// has no probe, no port and no token; what it writes is its status.
func archiver(in Input, site v1alpha1.Site) []corev1.Container {
	profile, ok := archiveProfile(in)
	if !ok {
		return nil
	}
	place, resources := archivePlace(in, profile), archiverResources(in)
	memory := resources.Limits.Memory().Value()
	return []corev1.Container{{
		Name:            ContainerArchiver,
		Image:           in.Install.BackupImage,
		ImagePullPolicy: in.Install.BackupPullPolicy,
		Args:            []string{"archive"},
		Env: []corev1.EnvVar{
			{Name: wire.EnvArchiverConfig, Value: archiverConfig(in, site, profile, place.Bucket, memory).Text()},
			// Its memory is given back before the kernel ends it: a container that ends takes the readiness of the pod with it.
			{Name: "GOMEMLIMIT", Value: strconv.FormatInt(memory/4*3, 10)},
		},
		Resources:       resources,
		SecurityContext: containerSecurity(),
		VolumeMounts: append([]corev1.VolumeMount{
			{Name: volumeArchiver, MountPath: archiverDir},
			{Name: volumeArchiverAccount, MountPath: archiverAccountDir, ReadOnly: true},
			// The index of the binary logs, to be told when there is a new one; the logs themselves are read through the server.
			{Name: volumeData, MountPath: volumeDir, ReadOnly: true},
			{Name: volumeRun, MountPath: runDir, ReadOnly: true},
		}, place.Mounts...),
	}}
}

func archiverConfig(in Input, site v1alpha1.Site, p v1alpha1.BackupProfile, bucket wire.BackupBucket, memory int64) wire.ArchiverConfig {
	c := wire.ArchiverConfig{
		Bucket: bucket, Profile: p.Name, GroupUID: string(in.Group.UID), Site: site.Name,
		IntervalMillis: ArchiveInterval(in.Group.Spec.Backup.PITR).Milliseconds(), OperatorURL: in.Install.OperatorURL, AuthorityKey: in.Anchors[site.Name],
		SidecarURL: "http://127.0.0.1:" + strconv.Itoa(wire.PortSidecar),
		Server: wire.ArchiverServer{
			Socket: Socket, User: accountBackup, PasswordFile: path.Join(archiverAccountDir, v1alpha1.AccountBackup), BinlogIndex: path.Join(DataDir, binlogIndex),
		},
		StatusFile: archiverStatus, MemoryBytes: memory,
	}
	if p.Encryption != nil {
		c.Recipients = append(c.Recipients, p.Encryption.Recipients...)
	}
	return c
}

func archiverResources(in Input) corev1.ResourceRequirements {
	out := *in.Group.Spec.Backup.PITR.Resources.DeepCopy()
	if out.Requests == nil {
		out.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	}
	if out.Limits == nil {
		out.Limits = corev1.ResourceList{}
	}
	if out.Limits.Memory().IsZero() {
		out.Limits[corev1.ResourceMemory] = resource.MustParse("256Mi")
	}
	return out
}

func archiverVolumes(in Input) []corev1.Volume {
	profile, ok := archiveProfile(in)
	if !ok {
		return nil
	}
	account := secretVolume(volumeArchiverAccount, v1alpha1.AccountsSecret(in.Group.Name), secretMode, items(v1alpha1.AccountBackup, v1alpha1.AccountBackup))
	account.Secret.Optional = new(true)
	return append([]corev1.Volume{Memory(volumeArchiver, archiverRoom), account}, archivePlace(in, profile).Volumes...)
}

// tellsOfArchiver has the sidecar serve the status of the archiver.
func tellsOfArchiver(in Input, c corev1.Container) corev1.Container {
	if _, ok := archiveProfile(in); ok {
		c.Env = append(c.Env, corev1.EnvVar{Name: wire.EnvArchiverStatus, Value: archiverStatus})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeArchiver, MountPath: archiverDir, ReadOnly: true})
	}
	return c
}
