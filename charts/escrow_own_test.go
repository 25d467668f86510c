// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// Without a Secret the operator makes the certificate of its escrow listener, and mounts none.
func TestTheEscrowListenerMakesItsCertificate(t *testing.T) {
	for values, own := range map[string]bool{
		"crds: {enabled: false}": false, "crds: {enabled: false}\nauxiliary: {escrowTLS: {enabled: true}}": true,
		"crds: {enabled: false}\nauxiliary: {escrowTLS: {enabled: true, existingSecret: x}}": false,
	} {
		pod := only[appsv1.Deployment](t, objects(t, render(t, operatorChart, values))).Spec.Template.Spec
		if made := slices.Contains(pod.Containers[0].Args, "--escrow-own-certificate=true"); made != own {
			t.Errorf("%s: it makes its own: %t", values, made)
		}
		if mounts := len(pod.Volumes) + len(pod.Containers[0].VolumeMounts); own && mounts > 0 {
			t.Errorf("%s: %d mounts", values, mounts)
		}
	}
}
