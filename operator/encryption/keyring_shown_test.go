// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// TestAKeyringIsShown: its phase, its version and what is encrypted.
func TestAKeyringIsShown(t *testing.T) {
	t.Cleanup(func() { metrics.ForgetGroup("ns", "k") })
	Coverage.Reset() // other tests of the package show sites too
	site := v1alpha1.SiteKeyringStatus{Name: "a", Phase: v1alpha1.KeyringEscrowed, KeyringVersion: 2}
	showKeyring("ns", "k", site)
	if n := testutil.CollectAndCount(Coverage); n != 0 {
		t.Errorf("%d aspects are claimed before MySQL has said anything", n)
	}
	site.Phase = v1alpha1.KeyringSealed
	site.Coverage = v1alpha1.CoverageStatus{KeyringComponent: "component_keyring_file", KeyringReadOnly: true, RedoLogEncrypted: true, UnencryptedTablespaces: 3}
	showKeyring("ns", "k", site)
	for phase, want := range map[string]float64{"pending": 0, "unsealed": 0, "escrowed": 0, "sealed": 1, "failed": 0} {
		if got := testutil.ToFloat64(Phases.WithLabelValues("ns", "k", "a", phase)); got != want {
			t.Errorf("phase %s = %v, want %v", phase, got, want)
		}
	}
	for aspect, want := range map[string]float64{"system_tablespace": 0, "redo_log": 1, "undo_log": 0, "binlog": 0, "keyring_read_only": 1} {
		if got := testutil.ToFloat64(Coverage.WithLabelValues("ns", "k", "a", aspect)); got != want {
			t.Errorf("aspect %s = %v, want %v", aspect, got, want)
		}
	}
	if got := testutil.ToFloat64(UnencryptedTablespaces.WithLabelValues("ns", "k", "a")); got != 3 {
		t.Errorf("unencrypted = %v", got)
	}
	if got := testutil.ToFloat64(EscrowVersion.WithLabelValues("ns", "k", "a")); got != 2 {
		t.Errorf("version = %v", got)
	}
}

// A rotation is counted for its group: every outcome is known once a keyring of the group was shown, and goes with the group.
func TestRotationsAreCountedByGroup(t *testing.T) {
	Rotations.Reset() // other tests of the package count some
	showKeyring("ns", "k", v1alpha1.SiteKeyringStatus{Name: "a", Phase: v1alpha1.KeyringSealed})
	if n := testutil.CollectAndCount(Rotations); n != 3 {
		t.Errorf("%d outcomes are known before the first rotation", n)
	}
	countRotation(types.NamespacedName{Namespace: "ns", Name: "k"}, RotationFailed)
	showKeyring("ns", "k", v1alpha1.SiteKeyringStatus{Name: "a", Phase: v1alpha1.KeyringSealed})
	if got := testutil.ToFloat64(Rotations.WithLabelValues("ns", "k", RotationFailed)); got != 1 {
		t.Errorf("failed = %v", got)
	}
	metrics.ForgetGroup("ns", "k")
	if n := testutil.CollectAndCount(Rotations); n != 0 {
		t.Errorf("%d series of a group that is gone", n)
	}
}
