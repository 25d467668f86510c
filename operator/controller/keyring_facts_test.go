// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// I14: both ends of a move of the role count as active, whatever status names: the data of neither is given up, and on neither
// runs a rotation (I20).
func TestBothEndsOfAMoveAreActiveI14I20(t *testing.T) {
	for name, tt := range map[string]struct {
		moving *v1alpha1.Transition
		want   string
	}{
		"steady": {nil, "a"},
		"moving": {&v1alpha1.Transition{From: "a", To: "b"}, "ab"},
		"its former active site is another one than status names": {&v1alpha1.Transition{From: "c", To: "a"}, "ac"},
	} {
		w := encryptedWorld(t)
		g := w.group()
		g.Status.ActiveSite, g.Status.Transition = "a", tt.moving
		got := ""
		for _, site := range []string{"a", "b", "c"} {
			one, err := w.r.encryption.Site(w.ctx, &scope.Scope{Key: scopetest.Key, Group: g, Now: time.Now()}, site)
			w.must(err)
			if one.Active {
				got += site
			}
		}
		if got != tt.want {
			t.Errorf("I14, I20: %s: %q, want %q", name, got, tt.want)
		}
	}
}
