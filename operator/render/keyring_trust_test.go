// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"slices"
	"testing"

	"github.com/mysql-mfg/mfg/operator/render"
)

// Who makes the endpoint's certificate says what it is believed by: with the operator's own that comes with the token, and nothing of a
// sealed pod changes.
func TestWhatTheEscrowEndpointIsBelievedBy(t *testing.T) {
	own := func(in *render.Input) { in.Install.EscrowOwn = true }
	for name, tc := range map[string]struct {
		options []option
		file    string
		mounted bool
	}{
		"a person's":     {[]option{encrypted(unsealed)}, render.TLSDir + "/ca.crt", false},
		"the operator's": {[]option{encrypted(unsealed), own}, render.EscrowDir + "/ca.crt", true},
		"a first pod":    {[]option{encrypted(fresh), own}, render.EscrowDir + "/ca.crt", true},
		"sealed":         {[]option{encrypted(sealed), own}, "", false},
	} {
		spec := pod(input(tc.options...))
		sidecar := containers(spec)[render.ContainerSidecar]
		if got := envOf(sidecar)["MFG_ESCROW_CA"]; got != tc.file {
			t.Errorf("%s: it believes %q", name, got)
		}
		if got := slices.Contains(secretsOf(spec, sidecar), tokenSecret+"/ca.crt"); got != tc.mounted {
			t.Errorf("%s: authorities beside the token: %t", name, got)
		}
		if slices.Contains(secretsOf(spec, containers(spec)[render.ContainerMySQL]), tokenSecret+"/ca.crt") {
			t.Errorf("%s: MySQL has what is not for it", name)
		}
	}
}
