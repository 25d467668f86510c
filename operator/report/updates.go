// SPDX-License-Identifier: Apache-2.0

package report

// Reasons of Progressing while pods are replaced and volumes grow.
const (
	ReasonMovingRole       = "MovingRole"
	ReasonSiteNotBack      = "SiteNotBack"
	ReasonRoleStays        = "RoleStays"
	ReasonNoCandidate      = "NoCandidate"
	ReasonVolumeGrowing    = "VolumeGrowing"
	ReasonVolumeCannotGrow = "VolumeCannotGrow"
	ReasonVolumeLarger     = "VolumeLarger"
)

// The events of updates and of volumes.
var (
	SiteAskedToLeave = normal("SiteAskedToLeave", "Update", "Only the active site is left to update; its role is moved away first.")
	SiteNotBack      = warning("SiteNotBack", "Wait", "A site has the pod that is specified and does not come back; no other site is updated.")
	PauseUnreadable  = warning("PauseUnreadable", "Ignore", "The annotation pause-until holds no time; the group is not paused.")
	VolumeGrowing    = normal("VolumeGrowing", "Grow", "The data volume of a site is being made larger.")
	VolumeCannotGrow = warning("VolumeCannotGrow", "Wait", "The data volume of a site should be larger, and its storage does not allow that.")
	VolumeLarger     = warning("VolumeLarger", "Refuse", "The data volume of a site is larger than specified; volumes do not shrink.")
)
