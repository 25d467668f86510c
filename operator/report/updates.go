// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// The events of updates and of volumes.
var (
	SiteAskedToLeave = normal(v1alpha1.ReasonSiteAskedToLeave, "Update")
	SiteNotBack      = warning(v1alpha1.ReasonSiteNotBack, "Wait")
	PauseUnreadable  = warning(v1alpha1.ReasonPauseUnreadable, "Ignore")
	VolumeGrowing    = normal(v1alpha1.ReasonVolumeGrowing, "Grow")
	VolumeCannotGrow = warning(v1alpha1.ReasonVolumeCannotGrow, "Wait")
	VolumeLarger     = warning(v1alpha1.ReasonVolumeLarger, "Refuse")
)
