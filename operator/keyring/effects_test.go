// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"
)

// I19: the phase machine is never given a key or a token, and no effect has room for one.
func TestI19EffectsTellNothingSecret(t *testing.T) {
	for _, e := range []Effect{
		MakeToken{Site: "b", Round: 3}, DropToken{Site: "b"}, Rotate{Site: "b"}, Prune{Site: "b", Names: []string{"v1"}},
		Unprovision{Site: "b", Why: "w"}, Answer{Site: "b", Why: "w"}, Say{Site: "b", What: EventSealed, Text: "t"},
	} {
		if !strings.Contains(e.String(), "b") || strings.Contains(e.String(), "%!") {
			t.Errorf("%T prints as %q", e, e)
		}
	}
}
