// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// Phases is 1 for the present phase of a site's keyring and 0 for all others; showKeyring sets it.
var Phases = metrics.Gauge(metrics.Site, "operator_keyring_phase",
	"1 for the phase of the site's keyring, 0 for the others.", "phase")

// EscrowVersion is the escrow version that is current for a site.
var EscrowVersion = metrics.Gauge(metrics.Site, "operator_keyring_escrow_version",
	"Current escrow version of the site's keyring; 0 while nothing is in escrow.")

// Outcomes of Rotations.
const (
	RotationCompleted = "completed"
	RotationFailed    = "failed"
	RotationRefused   = "refused"
)

// Rotations counts rotations of master keys, by outcome. It does not name the site: a person may have ordered one that does not exist.
var Rotations = metrics.Counter(metrics.Group, "operator_keyring_rotations_total",
	"Rotations of master keys of the group's sites, by outcome.", "outcome")

// CampaignLeft counts the sites that the rotation of all sites still has to do.
var CampaignLeft = metrics.Gauge(metrics.Group, "operator_keyring_campaign_sites_left",
	"Sites that the rotation of all sites, which is under way, has still to rotate; 0 while there is none.")

// CampaignWaits is 1 while the rotation of all sites waits for something.
var CampaignWaits = metrics.Gauge(metrics.Group, "operator_keyring_campaign_waiting",
	"1 while the rotation of all sites waits for something, else 0. status.encryptionAtRest.campaign says for what.")

// showCampaign shows the rotation of all sites.
func showCampaign(namespace, group string, c *v1alpha1.CampaignStatus) {
	left := 0
	if c.UnderWay() {
		left = len(c.Left())
	}
	CampaignLeft.WithLabelValues(namespace, group).Set(float64(left))
	CampaignWaits.WithLabelValues(namespace, group).Set(oneIf(c.Waits()))
}

// UnencryptedTablespaces counts the tablespaces in the clear.
var UnencryptedTablespaces = metrics.Gauge(metrics.Site, "operator_encryption_unencrypted_tablespaces",
	"User tablespaces of the site with ENCRYPTION='N'.")

// Coverage is 1 for each aspect of a site that is encrypted.
var Coverage = metrics.Gauge(metrics.Site, "operator_encryption_coverage",
	"1 for each aspect of the site that MySQL says is encrypted, else 0.", "aspect")

// countRotation counts one.
func countRotation(of types.NamespacedName, outcome string) {
	Rotations.WithLabelValues(of.Namespace, of.Name, outcome).Inc()
}

// showKeyring shows the keyring of one site. Every outcome of Rotations is known from then on: a rate over a series that does not exist yet
// misses its first increase.
func showKeyring(namespace, group string, site v1alpha1.SiteKeyringStatus) {
	for _, outcome := range []string{RotationCompleted, RotationFailed, RotationRefused} {
		Rotations.WithLabelValues(namespace, group, outcome)
	}
	for _, phase := range []v1alpha1.KeyringPhase{
		v1alpha1.KeyringPending, v1alpha1.KeyringUnsealed, v1alpha1.KeyringEscrowed, v1alpha1.KeyringSealed, v1alpha1.KeyringFailed,
	} {
		Phases.WithLabelValues(namespace, group, site.Name, strings.ToLower(string(phase))).Set(oneIf(phase == site.Phase))
	}
	EscrowVersion.WithLabelValues(namespace, group, site.Name).Set(float64(site.KeyringVersion))
	c := site.Coverage
	if c.KeyringComponent == "" {
		return // MySQL has reported nothing yet, and 0 would be a claim
	}
	UnencryptedTablespaces.WithLabelValues(namespace, group, site.Name).Set(float64(c.UnencryptedTablespaces))
	for aspect, covered := range map[string]bool{
		"system_tablespace": c.SystemTablespaceEncrypted, "redo_log": c.RedoLogEncrypted, "undo_log": c.UndoLogEncrypted,
		"binlog": c.BinlogEncrypted, "keyring_read_only": c.KeyringReadOnly,
	} {
		Coverage.WithLabelValues(namespace, group, site.Name, aspect).Set(oneIf(covered))
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
