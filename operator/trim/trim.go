// SPDX-License-Identifier: Apache-2.0

// Package trim takes from objects of the cache what the operator never reads there.
package trim

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// lastApplied is where kubectl apply leaves a second copy of the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Object removes from an object what the operator never reads from the cache. With a thousand groups that is most of the
// memory. It names what goes, not what stays: a field unknown here stays. Code that needs a removed field reads it live;
// an object from the cache is written back only in parts (apply, merge patches), never whole.
//
//	all           managed fields, what kubectl applied last
//	Pod           annotations that are not the operator's, volumes, and of containers all but name, image, restart policy and, of the sidecar, what the promotion gate and the steps to TLS look at
//	Deployment    its template
//	StatefulSet   the spec of its template
//	Job           the spec of its template
//	ConfigMap     data
//	Node          images, volumes
func Object(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil // an object that was deleted while the watch was down
	}
	o.SetManagedFields(nil)
	if _, has := o.GetAnnotations()[lastApplied]; has {
		annotations := o.GetAnnotations()
		delete(annotations, lastApplied)
		o.SetAnnotations(annotations)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		// A group may give the pods of each site any annotation.
		maps.DeleteFunc(o.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, v1alpha1.Domain+"/") })
		trimPod(&o.Spec)
		trimStatuses(o.Status.InitContainerStatuses)
		trimStatuses(o.Status.ContainerStatuses)
	case *appsv1.Deployment:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *appsv1.StatefulSet:
		o.Spec.Template.Spec = corev1.PodSpec{}
	case *batchv1.Job:
		o.Spec.Template.Spec = corev1.PodSpec{}
	case *corev1.ConfigMap:
		o.Data, o.BinaryData = nil, nil
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil, nil
	}
	return obj, nil
}

// Transform returns Object as the cache's transform function.
func Transform() cache.TransformFunc { return Object }

func trimPod(spec *corev1.PodSpec) {
	spec.Volumes, spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints = nil, nil, nil, nil
	spec.SecurityContext, spec.ImagePullSecrets, spec.EphemeralContainers = nil, nil, nil
	spec.InitContainers, spec.Containers = trimContainers(spec.InitContainers), trimContainers(spec.Containers)
}

// trimContainers copies: the decoded array has spare capacity, and each container takes nearly a kilobyte.
func trimContainers(all []corev1.Container) []corev1.Container {
	trimmed := make([]corev1.Container, 0, len(all))
	for _, c := range all {
		kept := corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy}
		for _, e := range c.Env {
			// The promotion gate needs the lease, the peers (I4), and whether reports are authenticated (I12). The steps to TLS need to know
			// whether the pod refuses clients without TLS.
			if slices.Contains([]string{v1alpha1.EnvLeaseTimeout, v1alpha1.EnvFenceTimeout, v1alpha1.EnvPeers, v1alpha1.EnvReportKey, v1alpha1.EnvRequireTLS}, e.Name) {
				kept.Env = append(kept.Env, e)
			}
		}
		trimmed = append(trimmed, kept)
	}
	return trimmed
}

func trimStatuses(all []corev1.ContainerStatus) {
	for i := range all {
		all[i].ImageID, all[i].ContainerID, all[i].VolumeMounts = "", "", nil
		all[i].AllocatedResources, all[i].Resources, all[i].User = nil, nil, nil
	}
}
