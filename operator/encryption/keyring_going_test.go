// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// A deletion that waits because nobody can look says so, once, and if it goes on without a look it says what that may cost.
func TestADeletionThatCannotLookSaysSo(t *testing.T) {
	group := scopetest.Group(scopetest.Running, scopetest.WithEncryption)
	sh := newShell(t, group)
	sh.rest.observes = errAway
	for range 2 {
		if waits, err := sh.AwaitEscrow(t.Context(), group); waits || !errors.Is(err, errAway) {
			t.Errorf("waits %t, %v", waits, err)
		}
	}
	said := sh.said.Of(v1alpha1.ReasonDeletionWaits)
	if len(said) != 1 || !strings.Contains(said[0], errAway.Error()) || !strings.Contains(said[0], "at the latest") {
		t.Errorf("said %v", sh.said.List)
	}
	sh.Waits.Over(&scope.Scope{Key: scopetest.Key}, waitForKeyrings)
	sh.Waits.SinceFirst(&scope.Scope{Key: scopetest.Key, Now: time.Now().Add(-escrowPatience(group))}, waitForKeyrings)
	for range 2 {
		if waits, err := sh.AwaitEscrow(t.Context(), group); waits || err != nil {
			t.Errorf("once the patience is over: waits %t, %v", waits, err)
		}
	}
	if left := sh.said.Of(v1alpha1.ReasonKeyringLeftBehind); len(left) != 1 || !strings.Contains(left[0], errAway.Error()) {
		t.Errorf("said %v", sh.said.List)
	}
	// Who can look, and finds nothing that is in a pod alone, says nothing.
	sh.rest.observes, sh.said.List = nil, nil
	if waits, err := sh.AwaitEscrow(t.Context(), group); waits || err != nil || len(sh.said.List) != 0 {
		t.Errorf("waits %t, %v; said %v", waits, err, sh.said.List)
	}
}
