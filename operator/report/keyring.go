// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Reasons of EncryptionAtRestReady.
const (
	ReasonAllSealed         = "AllSealed"
	ReasonNotSealed         = "NotSealed"
	ReasonEscrowMissing     = "KeyringEscrowMissing"
	ReasonEscrowLate        = "KeyringNotEscrowed"
	ReasonAdoptionRefused   = "EncryptionAdoptionRefused"
	ReasonPartialCoverage   = "PartialCoverage"
	ReasonNoEscrowListener  = "EscrowListenerMissing"
	ReasonKeyringKept       = "KeyringKept"
	ReasonWaitingForKeyring = "WaitingForKeyring"
)

// The events of keyrings.
var (
	KeyringUnsealed           = normal("KeyringUnsealed", "Unseal", "The keyring of a site can be written, for a bootstrap, a clone or a rotation.")
	KeyringEscrowed           = normal("KeyringEscrowed", "Escrow", "The keyring of a site is in escrow, in an immutable Secret.")
	KeyringSealed             = normal("KeyringSealed", "Seal", "The keyring of a site is sealed: MySQL cannot change it.")
	KeyringEscrowMissing      = warning("KeyringEscrowMissing", "Hold", "The escrow Secret of a sealed site is gone or changed; its pod is never restarted.")
	KeyringEscrowRestored     = normal("KeyringEscrowRestored", "Observe", "The escrow Secret of a site is there again, with its digest.")
	KeyringNotEscrowed        = warning("KeyringNotEscrowed", "Retry", "The keyring of a site was not escrowed in time; it stays unsealed, and it is tried on.")
	KeyringLost               = warning("KeyringLost", "Clone", "A site lost its keyring with its pod; it is cloned anew.")
	KeyringFound              = normal("KeyringFound", "Seal", "A site starts with the keyring that is in escrow for it.")
	KeyringRotated            = normal("KeyringRotated", "Rotate", "Both master keys of a site were rotated.")
	KeyringRotationFailed     = warning("KeyringRotationFailed", "Retry", "The master keys of a site were not rotated, or not both; it is tried again.")
	KeyringRotationRefused    = warning("KeyringRotationRefused", "Refuse", "A rotation was asked for and refused; nothing was changed.")
	DeletionWaits             = warning("DeletionWaits", "Hold", "The keyring of a site whose volume stays is not in escrow yet, or the operator has no escrow listener any more and cannot let go of keyrings; the deletion waits.")
	KeyringLeftBehind         = warning("KeyringLeftBehind", "Remove", "A group or a site was removed before the keyring of a volume that stays came into escrow; it may be readable by nobody.")
	EncryptionAdopted         = normal("EncryptionAdopted", "Adopt", "A site that served without encryption is encrypted from now on; what exists stays in the clear.")
	EncryptionAdoptionRefused = warning("EncryptionAdoptionRefused", "Refuse",
		"Encryption was turned on for a group that serves; existing tablespaces would stay plaintext, and nothing was changed.")
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
