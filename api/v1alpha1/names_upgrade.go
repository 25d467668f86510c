// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names of the upgrade of groups to another version of the operator: docs/upgrades.md.
const (
	// AnnotationUpgradePin, with any value but the empty one, keeps the pods of a group at the version of the operator that made them.
	AnnotationUpgradePin = Domain + "/upgrade-pin"
	// AnnotationUpgradeWindow is when the turn of a group may begin, in UTC, instead of the window of the installation.
	AnnotationUpgradeWindow = Domain + "/upgrade-window"

	// AnnotationUpgradePaused, on the Lease of the turn, keeps further turns from beginning; its value says since when.
	AnnotationUpgradePaused = Domain + "/upgrade-paused"
	// AnnotationUpgradeStopped, on the Lease of the turn, says why no further turn begins.
	AnnotationUpgradeStopped = Domain + "/upgrade-stopped"
	// AnnotationUpgradePolicy, on the Lease of the turn, says in words how turns are paced.
	AnnotationUpgradePolicy = Domain + "/upgrade-policy"
	// AnnotationUpgradeRevision, on the Lease of the turn, names the version of the operator that leads, as status.upgrade of groups does. The
	// annotation upgrade-window, on the same Lease, is the window of the installation.
	AnnotationUpgradeRevision = Domain + "/upgrade-revision"

	// UpgradeLeaseSuffix, after the name of a release's Lease, is the name of the Lease whose holder is the group that has the turn.
	UpgradeLeaseSuffix = "-upgrade"

	// UpgradeLeaseName is that name as the chart installs the operator.
	UpgradeLeaseName = "mfg-operator" + UpgradeLeaseSuffix
)
