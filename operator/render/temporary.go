// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// What MySQL cannot encrypt while it works: temporary tables with their undo log, sort files, what ALTER TABLE sorts, and the
// general and slow log. It lies in /tmp, which is in memory on an encrypted site, unless the user says otherwise.
const (
	volumeLogs = "logs"
	logsDir    = tmpDir + "/logs"

	// logsRoom is for the general and slow log, which only grow: they must not take the room of transactions.
	logsRoom = "64Mi"
	// defaultRoom and leastRoom are that of /tmp where the site's memory has no limit, and where it has a small one.
	defaultRoom = 1 << 30
	leastRoom   = 64 << 20
	// roomShare is the part of a site's memory that /tmp may take, and transactionShare that of /tmp for one transaction. The default of
	// replica_parallel_workers is as many, so that what the active site took fits into the /tmp of a replica.
	roomShare        = 8
	transactionShare = 4
)

func temporaryFiles(in Input) v1alpha1.TemporaryFilesSpec {
	if e := in.Group.Spec.EncryptionAtRest; e != nil {
		return e.TemporaryFiles
	}
	return v1alpha1.TemporaryFilesSpec{}
}

// temporaryInMemory tells whether /tmp of a site is in memory.
func temporaryInMemory(in Input, site string) bool {
	return in.encrypted(site) && temporaryFiles(in).Medium != v1alpha1.TemporaryOnDisk
}

// temporaryRoom is how much /tmp of a site may hold in memory, in whole mebibytes.
func temporaryRoom(in Input, site v1alpha1.Site) resource.Quantity {
	if limit := temporaryFiles(in).SizeLimit; !limit.IsZero() {
		return limit
	}
	room := int64(defaultRoom)
	if memory := site.Resources.Limits.Memory(); !memory.IsZero() {
		room = max(leastRoom, memory.Value()/roomShare>>20<<20)
	}
	return *resource.NewQuantity(room, resource.BinarySI)
}

func temporaryVolumes(in Input, site v1alpha1.Site) []corev1.Volume {
	if !temporaryInMemory(in, site.Name) {
		return []corev1.Volume{emptyDir(volumeTmp)}
	}
	return []corev1.Volume{memory(volumeTmp, temporaryRoom(in, site)), memory(volumeLogs, resource.MustParse(logsRoom))}
}

func memory(name string, limit resource.Quantity) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		Medium: corev1.StorageMediumMemory, SizeLimit: &limit,
	}}}
}

// withLogs adds what a container that runs mysqld needs for its logs.
func withLogs(in Input, site string, mounts ...corev1.VolumeMount) []corev1.VolumeMount {
	if !temporaryInMemory(in, site) {
		return mounts
	}
	return append(mounts, corev1.VolumeMount{Name: volumeLogs, MountPath: logsDir})
}

// temporaryDefaults has the active site refuse a transaction that does not fit into memory, with an error that says so and
// before anything is written to the binary log: on a replica it would stop the applier.
func temporaryDefaults(in Input, site v1alpha1.Site) map[string]string {
	if !temporaryInMemory(in, site.Name) {
		return nil
	}
	room := temporaryRoom(in, site)
	// MySQL takes multiples of 4096.
	return map[string]string{"max_binlog_cache_size": strconv.FormatInt(room.Value()/transactionShare>>20<<20, 10)}
}

// logFiles says where the general and slow log go, if the user turns them on.
func logFiles(in Input, site string) map[string]string {
	dir := tmpDir
	if temporaryInMemory(in, site) {
		dir = logsDir
	}
	return map[string]string{"general_log_file": dir + "/general.log", "slow_query_log_file": dir + "/slow.log"}
}
