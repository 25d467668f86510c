// SPDX-License-Identifier: Apache-2.0

package scope

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Ordered is true if a site is to get a new pod for a restart that a person ordered, or for its keyring: to be unsealed, or sealed again. No
// version of the operator makes such a difference, so it tells an order even where nothing else can, as when it came while no
// operator ran. A pod that the Deployment in place did not make tells nothing.
func Ordered(s *Scope, site string, want *appsv1.Deployment) bool {
	current, pod := s.Deployments[site], s.Pods[site]
	if current == nil {
		return false
	}
	if current.Annotations[v1alpha1.AnnotationRestartedAt] != want.Annotations[v1alpha1.AnnotationRestartedAt] {
		return true
	}
	return pod != nil && pod.Annotations[v1alpha1.AnnotationSpecHash] == SpecHash(current) &&
		pod.Annotations[v1alpha1.AnnotationKeyringRound] != want.Spec.Template.Annotations[v1alpha1.AnnotationKeyringRound]
}
