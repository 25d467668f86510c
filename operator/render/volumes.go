// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	volumeData           = "data"
	volumeRun            = "run"
	volumeTmp            = "tmp"
	volumeBin            = "bin"
	volumeConfig         = "config"
	volumeAccounts       = "accounts"
	volumeSidecarAccount = "sidecar-account"
	volumeTLS            = "tls"
	volumeReport         = "report-key"
)

// secretMode lets the pod's group read and nobody else; the kubelet gives the files to the pod's fsGroup.
const secretMode int32 = 0o440

// DataVolume is the PVC of one site.
func DataVolume(in Input, site v1alpha1.Site) *corev1.PersistentVolumeClaim {
	size := site.Storage.Size
	if size.IsZero() {
		size = resource.MustParse("10Gi")
	}
	name := v1alpha1.DataVolumeName(in.Group.Name, site.Name)
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: in.keptMeta(name, SiteLabels(in.Group.Name, site.Name)),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: site.Storage.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size.DeepCopy()},
			},
		},
	}
}

func volumes(in Input, site v1alpha1.Site) []corev1.Volume {
	group := in.Group.Name
	out := []corev1.Volume{
		{Name: volumeData, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: v1alpha1.DataVolumeName(group, site.Name),
			},
		}},
		runVolume(),
	}
	out = append(out, temporaryVolumes(in, site)...)
	out = append(out, []corev1.Volume{
		emptyDir(volumeBin),
		{Name: volumeConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.ConfigName(group, site.Name)},
		}}},
		{Name: volumeAccounts, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(secretMode),
			Sources: append([]corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.AccountsSecret(group)},
					Items: items(
						AccountOperator, AccountOperator, AccountReplication, AccountReplication,
						AccountSidecar, AccountSidecar, AccountClone, AccountClone,
					),
				}},
				{Secret: &corev1.SecretProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.RootSecret(group)}, Optional: new(true), // only new data needs it
					Items: items(KeyRootPassword, "root"),
				}},
			}, ofApplication(in)...),
		}}},
		{Name: volumeSidecarAccount, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(secretMode),
			Sources: []corev1.VolumeProjection{
				ownPassword(group, nil, AccountSidecar),
				// The other passwords that the servers may take while it is replaced; the kubelet brings them when they come.
				ownPassword(group, new(true), v1alpha1.PasswordSerial, AccountSidecar+v1alpha1.PasswordKnown,
					AccountSidecar+v1alpha1.PasswordNext, AccountSidecar+v1alpha1.PasswordPrevious),
			},
		}}},
		secretVolume(volumeReport, v1alpha1.ReportSecret(group, site.Name), secretMode, items(v1alpha1.ReportKey, v1alpha1.ReportKey)),
	}...)
	if tls := in.Group.Spec.TLS; in.Group.TLSMounted() {
		out = append(out, corev1.Volume{Name: volumeTLS, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{
				SecretName:  tls.Secret(group),
				DefaultMode: new(secretMode),
				Items:       items("tls.crt", "tls.crt", "tls.key", "tls.key", "ca.crt", "ca.crt"),
			},
		}})
	}
	return slices.Concat(out, keyringVolumes(in, site.Name), restoreVolumes(in, site), archiverVolumes(in))
}

// ofApplication projects the account of the application, which the site makes with its data directory. A pod does without: MySQL needs no
// application.
func ofApplication(in Input) []corev1.VolumeProjection {
	if in.Group.Spec.Application == nil {
		return nil
	}
	return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.ApplicationSecret(in.Group.Name)}, Optional: new(true),
		Items: items(v1alpha1.ApplicationUsername, "app-username", v1alpha1.ApplicationPassword, "app-password", v1alpha1.ApplicationDatabase, "app-database"),
	}}}
}

// ownPassword projects keys of the accounts Secret as files of the same names.
func ownPassword(group string, optional *bool, keys ...string) corev1.VolumeProjection {
	out := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.AccountsSecret(group)}, Optional: optional}
	for _, key := range keys {
		out.Items = append(out.Items, items(key, key)...)
	}
	return corev1.VolumeProjection{Secret: out}
}

// items pairs keys of a Secret with the files they become.
func items(pairs ...string) []corev1.KeyToPath {
	var out []corev1.KeyToPath
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, corev1.KeyToPath{Key: pairs[i], Path: pairs[i+1]})
	}
	return out
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// runVolume holds the socket and the deadline that sidecar and supervisor share. It is in memory, so that no disk can keep
// either of them waiting.
func runVolume() corev1.Volume {
	return memory(volumeRun, resource.MustParse("16Mi"))
}

func withTLS(in Input, mounts ...corev1.VolumeMount) []corev1.VolumeMount {
	if !in.Group.TLSMounted() {
		return mounts
	}
	return append(mounts, corev1.VolumeMount{Name: volumeTLS, MountPath: TLSDir, ReadOnly: true})
}
