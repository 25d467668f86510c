// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"crypto/ed25519"
	"errors"
	"math"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// A sidecar never goes back behind an epoch (I5): with one that has no next, its site could never be opened again.
func TestAStatementHasARoomyEpochI2(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for epoch, whole := range map[int64]bool{
		math.MinInt64: false, 0: false, 1: true, wire.MaxEpoch: true, wire.MaxEpoch + 1: false, math.MaxInt64: false,
	} {
		signed, err := wire.Sign(private, wire.Statement{Namespace: "n", Group: "g", ActiveSite: "a", Epoch: epoch})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := wire.Verify(public, signed); (err == nil) != whole || err != nil && !errors.Is(err, wire.ErrStatement) || whole && s.Epoch != epoch {
			t.Errorf("epoch %d: %+v, %v", epoch, s, err)
		}
	}
}
