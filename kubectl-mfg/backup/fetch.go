// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"io"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/reader"
)

// fetch is one backup on its way to this machine.
type fetch struct {
	backup  *v1alpha1.MysqlBackup
	place   place
	install reader.Install
	timeout time.Duration
	keys    []age.Identity
	out     io.Writer
}

// place is where a backup is, and with what the image of the pod that reads it is pulled.
type place struct {
	storage     v1alpha1.BackupStorage
	pullSecrets []corev1.LocalObjectReference
}

// pod returns the pod that sends it.
func (f *fetch) pod(c Cluster) *reader.Pod {
	return &reader.Pod{
		Kube: c.Kube(), Namespace: f.backup.Namespace, Group: f.backup.Spec.Group, Task: "download", Name: f.backup.Name, Labels: map[string]string{v1alpha1.LabelBackup: f.backup.Name},
		Storage: f.place.storage, PullSecrets: f.place.pullSecrets, Config: map[string]any{"backup": f.backup.Name}, Install: f.install, Timeout: f.timeout,
	}
}

// errNotAsSaid: the received data is not what the manifest says.
var errNotAsSaid = errors.New("what came is not what its manifest says: it was damaged on the way or in the storage, or tampered with")
