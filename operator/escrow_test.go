// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestEscrowSettingsBelongTogether(t *testing.T) {
	required := []string{"--auxiliary-url=http://x:8082", "--sidecar-image=x", "--namespace=mfg-system"}
	for name, tc := range map[string]struct {
		args []string
		ok   bool
	}{
		"off":         {nil, true},
		"on":          {[]string{"--escrow-bind-address=:8443", "--escrow-url=https://x:8443"}, true},
		"without URL": {[]string{"--escrow-bind-address=:8443"}, false},
		"URL alone":   {[]string{"--escrow-url=https://x:8443"}, false},
	} {
		if _, err := parse(append(required, tc.args...)); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheNamespaceOfTheOperatorIsKnown: outside of a cluster nothing says where the keys that sign are kept.
func TestTheNamespaceOfTheOperatorIsKnown(t *testing.T) {
	required := []string{"--auxiliary-url=http://x:8082", "--sidecar-image=x"}
	t.Setenv("POD_NAMESPACE", "")
	if _, err := parse(required); err == nil {
		t.Error("it starts without")
	}
	t.Setenv("POD_NAMESPACE", "of-the-pod")
	for want, args := range map[string][]string{"of-the-pod": required, "told": append(required, "--namespace=told")} {
		if s, err := parse(args); err != nil || s.namespace != want {
			t.Errorf("namespace %q, %v; want %q", s.namespace, err, want)
		}
	}
}
