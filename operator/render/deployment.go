// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// AnnotationConfigHash is on the pod template, so that a changed option file replaces the pod: the pod reads it only
// when it starts.
const AnnotationConfigHash = v1alpha1.Domain + "/config-hash"

const (
	revisions        int32 = 2
	progressDeadline int32 = 600
)

// Deployment runs the one pod of a site. Its annotation AnnotationSpecHash is the hash of the whole pod template, which
// the pod carries too: a site is up to date when both are those of the rendered one.
func Deployment(in Input, site v1alpha1.Site) *appsv1.Deployment {
	labels := SiteLabels(in.Group.Name, site.Name)
	annotations := map[string]string{
		defaultContainer:     ContainerMySQL,
		AnnotationConfigHash: hash(ConfigMap(in, site).Data),
	}
	maps.Copy(annotations, keyringAnnotations(in, site.Name))
	restarted := cmp.Or(in.Restarted[site.Name], v1alpha1.RestartedAt(in.Group, site.Name))
	if restarted != "" {
		annotations[v1alpha1.AnnotationRestartedAt] = restarted
	}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: below(labels, in.Group.Spec.PodLabels), Annotations: below(annotations, in.Group.Spec.PodAnnotations)},
		Spec:       podSpec(in, site),
	}
	specHash := hash(template)
	template.Annotations[v1alpha1.AnnotationSpecHash] = specHash

	meta := in.meta(v1alpha1.SiteName(in.Group.Name, site.Name), labels)
	meta.Annotations = map[string]string{v1alpha1.AnnotationSpecHash: specHash, v1alpha1.AnnotationAuthority: in.Anchors[site.Name]}
	if restarted != "" {
		meta.Annotations[v1alpha1.AnnotationRestartedAt] = restarted // whence it is read: the operator keeps no templates
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			// Never two pods of a site at once: they would share a volume.
			Strategy:                appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			RevisionHistoryLimit:    new(revisions),
			ProgressDeadlineSeconds: new(progressDeadline),
			Selector:                &metav1.LabelSelector{MatchLabels: podSelector(in.Group.Name, site.Name)},
			Template:                template,
		},
	}
}

// below puts what a person adds to a pod below what the operator needs of it or gives it later, such as its role: Services, the operator and
// policies find pods by it. The API server refuses such keys already.
func below(own, added map[string]string) map[string]string {
	all := maps.Clone(own)
	for key, value := range added {
		domain, _, _ := strings.Cut(key, "/")
		if _, taken := own[key]; !taken && domain != v1alpha1.Domain && !strings.HasSuffix(domain, "."+v1alpha1.Domain) {
			all[key] = value
		}
	}
	return all
}

// hash is short enough to be read and long enough never to collide. JSON sorts the keys of maps.
func hash(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic("impossible: API types always encode: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])[:16]
}
