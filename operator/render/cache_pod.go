// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Where things lie in a cache pod, and the name of its container.
const (
	CacheDir       = "/data"
	CacheConfigDir = "/etc/mfg-cache"
	CacheAuthDir   = "/etc/mfg-cache-auth"
	ContainerCache = "cache"

	volumeCacheAuth = "auth"
)

// cacheGracePeriod is what the engine has, in seconds, to write its data to a volume when it is ended.
const cacheGracePeriod int64 = 30

// CacheStatefulSet runs the one pod of a site's cache. A pod of the old template stays until the controller deletes it, which it does one
// at a time, and with the master's not before the role has moved. AnnotationSpecHash is that of the template, on the pod too.
func CacheStatefulSet(in Input, site v1alpha1.Site) *appsv1.StatefulSet {
	group := in.Group.Name
	name, labels := v1alpha1.CacheSiteName(group, site.Name), CacheSiteLabels(group, site.Name)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
			defaultContainer:     ContainerCache,
			AnnotationConfigHash: hash(CacheConfigMap(in).Data),
		}},
		Spec: cachePod(in, site),
	}
	specHash := hash(template)
	template.Annotations[v1alpha1.AnnotationSpecHash] = specHash
	meta := in.meta(name, labels)
	meta.Annotations = map[string]string{v1alpha1.AnnotationSpecHash: specHash}
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			Replicas:             new(int32(1)),
			ServiceName:          name,
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit: new(revisions),
			Selector:             &metav1.LabelSelector{MatchLabels: cacheSelector(group, site.Name)},
			Template:             template,
		},
	}
}

func cachePod(in Input, site v1alpha1.Site) corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(cacheGracePeriod),
		SecurityContext:               PodSecurity(in.Install),
		ImagePullSecrets:              slices.Clone(in.Group.Spec.ImagePullSecrets),
		NodeSelector:                  site.NodeSelector,
		Affinity:                      cacheAffinity(in, site),
		Tolerations:                   cacheTolerations(in, site),
		Containers:                    []corev1.Container{cacheContainer(in)},
		Volumes:                       cacheVolumes(in, site),
	}
}

// cacheContainer starts the engine by arguments alone: the image's own entry point knows what the server is called, which differs between
// Valkey and Redis.
func cacheContainer(in Input) corev1.Container {
	spec := in.Group.Spec.Cache
	mounts := []corev1.VolumeMount{
		{Name: volumeData, MountPath: CacheDir},
		{Name: volumeTmp, MountPath: tmpDir},
		{Name: volumeConfig, MountPath: CacheConfigDir, ReadOnly: true},
		{Name: volumeCacheAuth, MountPath: CacheAuthDir, ReadOnly: true},
	}
	if CacheTLS(in.Group) {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeTLS, MountPath: TLSDir, ReadOnly: true})
	}
	return corev1.Container{
		Name:            ContainerCache,
		Image:           CacheImage(spec),
		ImagePullPolicy: spec.ImagePullPolicy,
		Args:            cacheArgs(spec.Engine),
		Env:             cacheEnv(in),
		WorkingDir:      CacheDir,
		Ports:           []corev1.ContainerPort{{Name: portCache, ContainerPort: v1alpha1.CachePort, Protocol: corev1.ProtocolTCP}},
		Resources:       cacheResources(spec),
		SecurityContext: containerSecurity(),
		// Both engines take connections while they load, so loading for long ends nobody. A probe that asked more would need a client in the
		// image, which an image need not have, and without one it would end a cache that is well again and again. An engine that hangs the
		// operator finds, which asks it every two seconds anyway: operator/cache/loop/stale.go.
		ReadinessProbe: cacheProbe(2, 1),
		LivenessProbe:  cacheProbe(10, 6),
		StartupProbe:   cacheProbe(1, 120),
		VolumeMounts:   mounts,
	}
}

// cacheEnv names the authority by which a replica of Dragonfly knows its master: without the flag for it, which would ask every client
// for a certificate, Dragonfly goes by what its TLS library trusts, and that goes by this variable.
func cacheEnv(in Input) []corev1.EnvVar {
	if in.Group.Spec.Cache.Engine != v1alpha1.CacheDragonfly || !CacheTLS(in.Group) {
		return nil
	}
	return []corev1.EnvVar{{Name: "SSL_CERT_FILE", Value: TLSDir + "/ca.crt"}}
}

func cacheProbe(period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intOrString(v1alpha1.CachePort)}},
		PeriodSeconds: period, TimeoutSeconds: 2, SuccessThreshold: 1, FailureThreshold: failures,
	}
}

func cacheVolumes(in Input, site v1alpha1.Site) []corev1.Volume {
	group, spec := in.Group.Name, in.Group.Spec.Cache
	data := emptyDir(volumeData)
	if spec.Storage != nil {
		data.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: v1alpha1.CacheVolumeName(group, site.Name),
		}}
	}
	out := []corev1.Volume{
		data,
		emptyDir(volumeTmp),
		{Name: volumeConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.CacheConfigName(group)},
		}}},
		secretVolume(volumeCacheAuth, v1alpha1.CacheAuthSecret(group), secretMode, items(cacheKeyAuth, cacheKeyAuth)),
	}
	if CacheTLS(in.Group) {
		out = append(out, secretVolume(volumeTLS, in.Group.Spec.TLS.Secret(in.Group.Name), secretMode,
			items("tls.crt", "tls.crt", "tls.key", "tls.key", "ca.crt", "ca.crt")))
	}
	return out
}
