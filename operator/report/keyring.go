// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The events of keyrings.
var (
	KeyringUnsealed           = normal(v1alpha1.ReasonKeyringUnsealed, "Unseal")
	KeyringEscrowed           = normal(v1alpha1.ReasonKeyringEscrowed, "Escrow")
	KeyringSealed             = normal(v1alpha1.ReasonKeyringSealed, "Seal")
	KeyringEscrowMissing      = warning(v1alpha1.ReasonKeyringEscrowMissing, "Hold")
	KeyringEscrowRestored     = normal(v1alpha1.ReasonKeyringEscrowRestored, "Observe")
	KeyringNotEscrowed        = warning(v1alpha1.ReasonKeyringNotEscrowed, "Retry")
	KeyringLost               = warning(v1alpha1.ReasonKeyringLost, "Clone")
	KeyringFound              = normal(v1alpha1.ReasonKeyringFound, "Seal")
	KeyringRotated            = normal(v1alpha1.ReasonKeyringRotated, "Rotate")
	KeyringRotationFailed     = warning(v1alpha1.ReasonKeyringRotationFailed, "Retry")
	KeyringRotationRefused    = warning(v1alpha1.ReasonKeyringRotationRefused, "Refuse")
	DeletionWaits             = warning(v1alpha1.ReasonDeletionWaits, "Hold")
	KeyringLeftBehind         = warning(v1alpha1.ReasonKeyringLeftBehind, "Remove")
	EncryptionAdopted         = normal(v1alpha1.ReasonEncryptionAdopted, "Adopt")
	EncryptionAdoptionRefused = warning(v1alpha1.ReasonEncryptionAdoptionRefused, "Refuse")
)

// KeyringPhase is one-hot over the phases of a site's keyring; set it with SetKeyring.
var KeyringPhase = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "operator_keyring_phase",
	Help: "1 for the phase of the site's keyring, 0 for the others.",
}, append(append([]string(nil), ofSite...), "phase"))

// KeyringVersion is the escrow version that is current for a site.
var KeyringVersion = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "operator_keyring_escrow_version",
	Help: "Current escrow version of the site's keyring; 0 while nothing is in escrow.",
}, ofSite)

// Outcomes of KeyringRotations.
const (
	RotationCompleted = "completed"
	RotationFailed    = "failed"
	RotationRefused   = "refused"
)

// KeyringRotations counts rotations of master keys, by outcome.
var KeyringRotations = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "operator_keyring_rotations_total",
	Help: "Rotations of a site's master keys, by outcome.",
}, []string{"outcome"})

// UnencryptedTablespaces counts what is in the clear.
var UnencryptedTablespaces = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "operator_encryption_unencrypted_tablespaces",
	Help: "User tablespaces of the site with ENCRYPTION='N'.",
}, ofSite)

// EncryptionCoverage is 1 for each aspect of a site that is encrypted.
var EncryptionCoverage = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "operator_encryption_coverage",
	Help: "1 for each aspect of the site that MySQL says is encrypted, else 0.",
}, append(append([]string(nil), ofSite...), "aspect"))

var (
	keyringSeries = []deleter{KeyringPhase, KeyringVersion, UnencryptedTablespaces, EncryptionCoverage}
	keyringAll    = []prometheus.Collector{KeyringPhase, KeyringVersion, KeyringRotations, UnencryptedTablespaces, EncryptionCoverage}
)

// StartRotations makes every outcome of KeyringRotations known with 0.
func StartRotations() {
	for _, outcome := range []string{RotationCompleted, RotationFailed, RotationRefused} {
		KeyringRotations.WithLabelValues(outcome)
	}
}

// SetKeyring shows the keyring of one site.
func SetKeyring(namespace, group string, site v1alpha1.SiteKeyringStatus) {
	for _, phase := range []v1alpha1.KeyringPhase{
		v1alpha1.KeyringPending, v1alpha1.KeyringUnsealed, v1alpha1.KeyringEscrowed, v1alpha1.KeyringSealed, v1alpha1.KeyringFailed,
	} {
		KeyringPhase.WithLabelValues(namespace, group, site.Name, strings.ToLower(string(phase))).Set(oneIf(phase == site.Phase))
	}
	KeyringVersion.WithLabelValues(namespace, group, site.Name).Set(float64(site.KeyringVersion))
	c := site.Coverage
	if c.KeyringComponent == "" {
		return // MySQL has said nothing yet, and 0 would be a claim
	}
	UnencryptedTablespaces.WithLabelValues(namespace, group, site.Name).Set(float64(c.UnencryptedTablespaces))
	for aspect, covered := range map[string]bool{
		"system_tablespace": c.SystemTablespaceEncrypted, "redo_log": c.RedoLogEncrypted, "undo_log": c.UndoLogEncrypted,
		"binlog": c.BinlogEncrypted, "keyring_read_only": c.KeyringReadOnly,
	} {
		EncryptionCoverage.WithLabelValues(namespace, group, site.Name, aspect).Set(oneIf(covered))
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
