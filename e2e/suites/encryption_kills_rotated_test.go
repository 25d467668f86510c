// SPDX-License-Identifier: Apache-2.0

//go:build lab && kills

package suites

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/kills"
)

// copyInMemory is the digest of a keyring that exists in a pod alone.
type copyInMemory string

// onlyInMemory waits until both master keys were rotated while escrow is withheld.
func (v *vault) onlyInMemory(t *testing.T, site string, was v1alpha1.SiteKeyringStatus) copyInMemory {
	t.Helper()
	err := stage.Poll(t.Context(), resealing, "both master keys of "+site+" to be rotated", func(ctx context.Context) error {
		group, err := v.Get(ctx)
		if err == nil && !steps[kills.StepRotated].at(group, site) {
			k := keyringOf(group, site)
			err = fmt.Errorf("the keyring is %q, stage %q (%s)", k.Phase, k.Stage, k.Message)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	live := v.liveDigest(t, site)
	if live == was.KeyringDigest {
		t.Fatalf("the keyring of %s is still that of version %d", site, was.KeyringVersion)
	}
	group, err := v.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if k := keyringOf(group, site); k.KeyringVersion != was.KeyringVersion {
		t.Fatalf("version %d of %s is in escrow although that is withheld", k.KeyringVersion, site)
	}
	return copyInMemory(live)
}

// judge: keys that survive in their pod go into escrow; with their pod or node they are lost, and the site is cloned again.
func (alone copyInMemory) judge(t *testing.T, c kills.Case, now v1alpha1.SiteKeyringStatus, events []string) {
	t.Helper()
	told := slices.Contains(events, "KeyringLost")
	switch c.Kill {
	case kills.Pod, kills.Node:
		if !told || now.KeyringDigest == string(alone) {
			t.Errorf("the only copy went with the %s: told %t, sealed with %s, which was %s", c.Kill, told, now.KeyringDigest, alone)
		}
	default:
		if told || now.KeyringDigest != string(alone) {
			t.Errorf("its pod has the only copy still: lost %t, sealed with %s, in memory was %s", told, now.KeyringDigest, alone)
		}
	}
}
