// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// envRequireTLS has the sidecar speak to MySQL over TLS alone. It is in exactly the pods whose MySQL refuses connections without.
const envRequireTLS = "MFG_REQUIRE_TLS"

// RequiresTLS is true for a pod of MySQL that was made to refuse connections without TLS.
func RequiresTLS(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == envRequireTLS && e.Value == "true" })
	})
}
