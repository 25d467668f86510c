// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestEscrowSettingsBelongTogether(t *testing.T) {
	required := []string{"--auxiliary-url=http://x:8082", "--sidecar-image=x"}
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
