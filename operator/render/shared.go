// SPDX-License-Identifier: Apache-2.0

package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// What the pods of backups (operator/backupjob) have in common with those of sites.
const (
	BinDir = binDir
	RunDir = runDir
	TmpDir = tmpDir
	// KeyringLimit is how much room a keyring in memory has.
	KeyringLimit = keyringLimit
	// DefaultContainer is the annotation that says whose log people want.
	DefaultContainer = defaultContainer
)

// Memory is a volume in memory.
func Memory(name, limit string) corev1.Volume { return memory(name, resource.MustParse(limit)) }

// SecretVolume has keys of a Secret as files, given in pairs, which only the group of the pod reads.
func SecretVolume(name, secret string, pairs ...string) corev1.Volume {
	return secretVolume(name, secret, secretMode, items(pairs...))
}

// ContainerSecurity is what every container is restricted to.
func ContainerSecurity() *corev1.SecurityContext { return containerSecurity() }

// KeyringFiles are where the component of a scratch server has its keyring, and where its manifest and its configuration are mounted, with
// the keys of the site's ConfigMap.
func KeyringFiles(group *v1alpha1.MysqlFailoverGroup) (dir string, files map[string]string) {
	dirs := keyringDirs(Input{Group: group})
	return dirs.DataFileDir, map[string]string{
		dirs.MysqldDir + "/" + manifestFile: ConfigKeyKeyringManifest, dirs.PluginDir + "/" + componentConfigFile: ConfigKeyKeyringUnsealed,
	}
}
