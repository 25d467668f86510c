// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// TestWhatASiteGetsInEachStep: a certificate from the second on, and with the last one its clients need TLS. Between those two nothing
// changes, so that no pod is replaced.
func TestWhatASiteGetsInEachStep(t *testing.T) {
	hashes := map[v1alpha1.TLSPhase]string{}
	for _, tc := range []struct {
		phase           v1alpha1.TLSPhase
		mounted         bool
		secure          string
		accountsWithTLS bool
	}{
		{v1alpha1.TLSPlain, false, "", false}, {v1alpha1.TLSCertificates, true, "OFF", false}, {v1alpha1.TLSChannels, true, "OFF", false},
		{v1alpha1.TLSClients, true, "OFF", false}, {v1alpha1.TLSRequired, true, "ON", true},
	} {
		in := input(tls)
		in.Group.Status.TLS = &v1alpha1.TLSStatus{Phase: tc.phase, Later: true}
		got := settings(t, in)
		if got["require_secure_transport"] != tc.secure || (got["ssl_ca"] != "") != tc.mounted || (got["loose_clone_ssl_ca"] != "") != tc.mounted {
			t.Errorf("%s: require_secure_transport=%s, ssl_ca=%s", tc.phase, got["require_secure_transport"], got["ssl_ca"])
		}
		p := pod(in)
		if has := slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == "tls" }); has != tc.mounted {
			t.Errorf("%s: the certificate is mounted: %t", tc.phase, has)
		}
		sidecar := containers(p)[render.ContainerSidecar]
		if has := slices.ContainsFunc(sidecar.Env, func(e corev1.EnvVar) bool { return e.Name == "MFG_REQUIRE_TLS" }); has != tc.accountsWithTLS {
			t.Errorf("%s: accounts have to use TLS: %t", tc.phase, has)
		}
		hashes[tc.phase] = render.Deployment(in, in.Group.Spec.Sites[0]).Annotations[v1alpha1.AnnotationSpecHash]
	}
	if hashes[v1alpha1.TLSCertificates] != hashes[v1alpha1.TLSChannels] || hashes[v1alpha1.TLSChannels] != hashes[v1alpha1.TLSClients] {
		t.Errorf("pods are replaced between: %v", hashes)
	}
	if hashes[v1alpha1.TLSPlain] == hashes[v1alpha1.TLSCertificates] || hashes[v1alpha1.TLSClients] == hashes[v1alpha1.TLSRequired] {
		t.Errorf("a step that changes the option file replaces no pod: %v", hashes)
	}
	later, began := input(tls), input(tls)
	later.Group.Status.TLS = &v1alpha1.TLSStatus{Phase: v1alpha1.TLSRequired}
	site := later.Group.Spec.Sites[0]
	if a, b := render.Deployment(later, site), render.Deployment(began, site); a.Annotations[v1alpha1.AnnotationSpecHash] != b.Annotations[v1alpha1.AnnotationSpecHash] {
		t.Error("a group that had TLS from its beginning gets other pods from an operator that knows the steps")
	}
}

// TestTheCacheStaysAsItIs when the group gets TLS later.
func TestTheCacheStaysAsItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		status *v1alpha1.TLSStatus
		says   *bool
		want   bool
	}{
		"a group with TLS from its beginning": {nil, nil, true},
		"the operator has looked at it":       {&v1alpha1.TLSStatus{Phase: v1alpha1.TLSRequired}, nil, true},
		"clients are let in without TLS":      {&v1alpha1.TLSStatus{Phase: v1alpha1.TLSClients}, nil, true},
		"TLS is about to come":                {&v1alpha1.TLSStatus{Phase: v1alpha1.TLSPlain}, nil, false},
		"not even by order":                   {&v1alpha1.TLSStatus{Phase: v1alpha1.TLSPlain}, new(true), false},
		"TLS came later":                      {&v1alpha1.TLSStatus{Phase: v1alpha1.TLSRequired, Later: true}, nil, false},
		"and the cache is to have it":         {&v1alpha1.TLSStatus{Phase: v1alpha1.TLSRequired, Later: true}, new(true), true},
		"the cache is to have none":           {nil, new(false), false},
	} {
		in := input(tls)
		in.Group.Status.TLS = tc.status
		in.Group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, TLS: v1alpha1.CacheTLS{Enabled: tc.says}}
		if got := render.CacheTLS(in.Group); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if in := input(tls); render.CacheTLS(in.Group) {
		t.Error("a cache that is off has TLS")
	}
}
