// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// freshMetrics forgets what other tests made the metrics say of the group: they are one for the whole process.
func freshMetrics(t *testing.T) {
	t.Helper()
	forget := func() { metrics.ForgetGroup(scopetest.Key.Namespace, scopetest.Key.Name) }
	forget()
	t.Cleanup(forget)
}

// metricsSay compares the phase and the escrow version that the metrics give for a site.
func metricsSay(t *testing.T, site string, phase v1alpha1.KeyringPhase, version float64) {
	t.Helper()
	for _, p := range []v1alpha1.KeyringPhase{
		v1alpha1.KeyringPending, v1alpha1.KeyringUnsealed, v1alpha1.KeyringEscrowed, v1alpha1.KeyringSealed, v1alpha1.KeyringFailed,
	} {
		want := 0.0
		if p == phase {
			want = 1
		}
		name := strings.ToLower(string(p))
		if got := testutil.ToFloat64(encryption.Phases.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, site, name)); got != want {
			t.Errorf("metrics give %v for the phase %s of %s, want %v: it is %s", got, name, site, want, phase)
		}
	}
	if got := testutil.ToFloat64(encryption.EscrowVersion.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, site)); got != version {
		t.Errorf("metrics give version %v of %s, want %v", got, site, version)
	}
}

// metricsCover compares which aspects of a site the metrics call encrypted, and how many tablespaces are not.
func metricsCover(t *testing.T, site string, want map[string]float64, tablespaces float64) {
	t.Helper()
	got := map[string]float64{}
	for aspect := range want {
		got[aspect] = testutil.ToFloat64(encryption.Coverage.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, site, aspect))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("coverage of %s in the metrics (-want +got):\n%s", site, diff)
	}
	if n := testutil.ToFloat64(encryption.UnencryptedTablespaces.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, site)); n != tablespaces {
		t.Errorf("metrics give %v unencrypted tablespaces of %s, want %v", n, site, tablespaces)
	}
}

// countRotations gives the outcomes of rotations that were counted since it was called; those that were not are left out.
func countRotations() func() map[string]float64 {
	all := func() map[string]float64 {
		out := map[string]float64{}
		for _, outcome := range []string{encryption.RotationCompleted, encryption.RotationFailed, encryption.RotationRefused} {
			out[outcome] = testutil.ToFloat64(encryption.Rotations.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, outcome))
		}
		return out
	}
	before := all()
	return func() map[string]float64 {
		out := map[string]float64{}
		for outcome, n := range all() {
			if n != before[outcome] {
				out[outcome] = n - before[outcome]
			}
		}
		return out
	}
}

// wantRotations compares the outcomes that were counted.
func wantRotations(t *testing.T, counted func() map[string]float64, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, counted()); diff != "" {
		t.Errorf("rotations in the metrics (-want +got):\n%s", diff)
	}
}

// withoutTokens is a vault in which no token can be made.
type withoutTokens struct{ vault }

func (withoutTokens) RenewToken(context.Context, *v1alpha1.MysqlFailoverGroup, string, int64) error {
	return errors.New("no token")
}

// Alerts are about what is persisted, whether what follows from it succeeds or not.
func TestMetricsOfKeyringsWhileAnEffectFails(t *testing.T) {
	freshMetrics(t)
	w := sealedWorld(t)
	w.r.encryption.Escrow = withoutTokens{vault{w.c}}
	w.order(v1alpha1.AnnotationRotateKeyring, "c")
	for range 3 {
		_, _ = w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
	}
	if got := w.keyring("c").Phase; got != v1alpha1.KeyringUnsealed {
		t.Fatalf("c is %s", got)
	}
	metricsSay(t, "c", v1alpha1.KeyringUnsealed, 1)
}

// After a restart without its listener the operator still says what stands in status.
func TestMetricsOfKeyringsWithoutAListener(t *testing.T) {
	freshMetrics(t)
	w := sealedWorld(t)
	metrics.ForgetGroup(scopetest.Key.Namespace, scopetest.Key.Name)
	w.r.encryption.Escrow = nil
	w.reconcile()
	metricsSay(t, "c", v1alpha1.KeyringSealed, 1)
}
