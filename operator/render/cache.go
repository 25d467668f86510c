// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The images of the cache engines that this version was made for. spec.cache.image names others.
const (
	DragonflyImage = "docker.dragonflydb.io/dragonflydb/dragonfly:v1.34.1"
	ValkeyImage    = "valkey/valkey:8.1.4"
)

const portCache = "cache"

// CacheEnabled is true for a group that has a cache store.
func CacheEnabled(group *v1alpha1.MysqlFailoverGroup) bool {
	return group.Spec.Cache != nil && group.Spec.Cache.Enabled
}

// CacheImage is the image of the cache pods.
func CacheImage(spec *v1alpha1.CacheSpec) string {
	if spec.Engine == v1alpha1.CacheValkey {
		return cmp.Or(spec.Image, ValkeyImage)
	}
	return cmp.Or(spec.Image, DragonflyImage)
}

// CacheTLS is true if the cache takes connections over TLS, and no others.
func CacheTLS(group *v1alpha1.MysqlFailoverGroup) bool {
	return CacheEnabled(group) && group.CacheTLS()
}

// CacheHost is the name under which the cache of a site is reached, and which the group's certificate must carry.
func CacheHost(namespace, group, site string) string {
	return v1alpha1.CacheSiteName(group, site) + "." + namespace + ".svc"
}

// CacheHosts are the names that the group's certificate must carry for its cache: that of the Service for applications, and those of
// the sites.
func CacheHosts(group *v1alpha1.MysqlFailoverGroup) []string {
	out := []string{v1alpha1.CacheService(group.Name) + "." + group.Namespace + ".svc"}
	for _, site := range group.Spec.Sites {
		out = append(out, CacheHost(group.Namespace, group.Name, site.Name))
	}
	return out
}

// CacheLabels are on every managed object of a group's cache.
func CacheLabels(group string) map[string]string {
	labels := GroupLabels(group)
	labels[v1alpha1.LabelName] = v1alpha1.NameCache
	return labels
}

// CacheSiteLabels are on every managed object of one site's cache, and on its pod. Role and traffic are not among them: a pod comes
// without, and nobody reaches it by the Service for applications before the loop has given it both.
func CacheSiteLabels(group, site string) map[string]string {
	labels := CacheLabels(group)
	labels[v1alpha1.LabelSite] = site
	return labels
}

// cacheSelector selects the pod of one site's cache. It must never change: a StatefulSet's selector is immutable.
func cacheSelector(group, site string) map[string]string {
	return map[string]string{v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelGroup: group, v1alpha1.LabelSite: site}
}

// CacheService is where applications connect. Its selector is the loop's, as that of the primary Service is: it follows the labels of pods,
// or, around a move, names a site.
func CacheService(in Input) *corev1.Service {
	s := service(in, v1alpha1.CacheService(in.Group.Name), CacheLabels(in.Group.Name))
	// The labels alone decide, as with the primary Service: a probe that is late must not cost a second of traffic.
	s.Spec.PublishNotReadyAddresses = true
	s.Spec.Ports = []corev1.ServicePort{port(portCache, v1alpha1.CachePort)}
	return s
}

// CacheSiteService gives direct access to one site's cache. It is headless: replicas and the operator reach the pod without the tables
// of kube-proxy in between. It has the pod's address before the pod is ready, because replicas have to find a master that loads.
func CacheSiteService(in Input, site v1alpha1.Site) *corev1.Service {
	s := service(in, v1alpha1.CacheSiteName(in.Group.Name, site.Name), CacheSiteLabels(in.Group.Name, site.Name))
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.PublishNotReadyAddresses = true
	s.Spec.Selector = cacheSelector(in.Group.Name, site.Name)
	s.Spec.Ports = []corev1.ServicePort{port(portCache, v1alpha1.CachePort)}
	return s
}

// CacheDisruptionBudget keeps the pod from eviction that takes the traffic. The drain of its node asks again until the loop has moved
// the master away, which takes the label from the pod. Replicas may go at any time: what they hold the master has.
func CacheDisruptionBudget(in Input, site v1alpha1.Site) *policyv1.PodDisruptionBudget {
	selector := cacheSelector(in.Group.Name, site.Name)
	selector[v1alpha1.LabelCacheTraffic] = v1alpha1.CacheTrafficOn
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: in.meta(v1alpha1.CacheSiteName(in.Group.Name, site.Name), CacheSiteLabels(in.Group.Name, site.Name)),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               new(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: selector},
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}

// CacheVolume is the PVC of one site's cache; nil without spec.cache.storage. It goes with the group whatever the deletion policy says:
// it holds a cache.
func CacheVolume(in Input, site v1alpha1.Site) *corev1.PersistentVolumeClaim {
	storage := in.Group.Spec.Cache.Storage
	if storage == nil {
		return nil
	}
	size := storage.Size
	if size.IsZero() {
		size = resource.MustParse("1Gi")
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: in.meta(v1alpha1.CacheVolumeName(in.Group.Name, site.Name), CacheSiteLabels(in.Group.Name, site.Name)),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: storage.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size.DeepCopy()}},
		},
	}
}

// CacheSecret holds the password as the engines and the loop take it, and in the engine's own words the file that it includes. The one
// before it is what a pod may still take that has not been told of a new one; empty if there is none.
func CacheSecret(in Input, password, before string) *corev1.Secret {
	data := map[string][]byte{
		v1alpha1.CachePassword: []byte(password), CacheKeyKnown: []byte(password), cacheKeyAuth: []byte(cacheAuth(in.Group.Spec.Cache.Engine, password)),
	}
	if before != "" && before != password {
		data[v1alpha1.CachePasswordPrevious] = []byte(before)
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: in.meta(v1alpha1.CacheAuthSecret(in.Group.Name), CacheLabels(in.Group.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// cacheMemory is how much data each cache pod holds, in bytes.
func cacheMemory(spec *v1alpha1.CacheSpec) int64 {
	return cmp.Or(spec.MaxMemory.Value(), 512<<20)
}

// cacheResources are those of the specification, with a memory limit.
func cacheResources(spec *v1alpha1.CacheSpec) corev1.ResourceRequirements {
	out := *spec.Resources.DeepCopy()
	if _, set := out.Limits[corev1.ResourceMemory]; set {
		return out
	}
	data := cacheMemory(spec)
	if out.Limits == nil {
		out.Limits = corev1.ResourceList{}
	}
	// Room for buffers of clients and replicas, fragments, and what a snapshot copies while it is written.
	limit := resource.NewQuantity(data+max(data/4, 128<<20), resource.BinarySI)
	if request, set := out.Requests[corev1.ResourceMemory]; set && request.Cmp(*limit) > 0 {
		*limit = request
	}
	out.Limits[corev1.ResourceMemory] = *limit
	return out
}

// cacheAffinity keeps the caches of a group apart where the user says nothing. With a site's own affinity its cache goes where its
// MySQL goes.
func cacheAffinity(in Input, site v1alpha1.Site) *corev1.Affinity {
	if site.Affinity != nil {
		return site.Affinity
	}
	return apart(map[string]string{v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelGroup: in.Group.Name})
}

func cacheTolerations(in Input, site v1alpha1.Site) []corev1.Toleration {
	return append(slices.Clone(site.Tolerations), inactiveToleration(in))
}
