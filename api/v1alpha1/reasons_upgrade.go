// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of the upgrade of groups to another version of the operator.
const (
	// ReasonUpgradeWaiting: the group's pods are those of an older version of the operator, and it is not the group's turn.
	ReasonUpgradeWaiting Reason = "UpgradeWaiting"
	// ReasonUpgradePinned: the annotation upgrade-pin keeps the group's pods at the version of the operator that made them.
	ReasonUpgradePinned Reason = "UpgradePinned"
	// ReasonUpgradeUnderWay: it is the group's turn; its pods are replaced one after the other.
	ReasonUpgradeUnderWay Reason = "UpgradeUnderWay"
	// ReasonUpgradeBegan: the turn of a group began.
	ReasonUpgradeBegan Reason = "UpgradeBegan"
	// ReasonUpgradeEnded: a group has the pods of the operator's version and stayed healthy for the pause.
	ReasonUpgradeEnded Reason = "UpgradeEnded"
	// ReasonUpgradeStopped: a group was not healthy with its new pods in time; no other group begins until a person says so.
	ReasonUpgradeStopped Reason = "UpgradeStopped"
	// ReasonUpgradeWindowUnreadable: the annotation upgrade-window of a group cannot be read; the group's turn does not come.
	ReasonUpgradeWindowUnreadable Reason = "UpgradeWindowUnreadable"
)
