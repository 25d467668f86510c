// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of the archive of binary logs. What the archiver of a pod says of its storage has a reason of backups.
const (
	// ReasonPITRArchiving: binary logs are archived as they should be.
	ReasonPITRArchiving Reason = "PITRArchiving"
	// ReasonPITRStarting: the archive is about to begin; nothing can be recovered from it yet.
	ReasonPITRStarting Reason = "PITRStarting"
	// ReasonPITRNoBase: there is no backup from which the archive could be applied.
	ReasonPITRNoBase Reason = "PITRNoBase"
	// ReasonPITRLags: the latest point in time that can be recovered is older than it should be.
	ReasonPITRLags Reason = "PITRLags"
	// ReasonPITRGap: transactions are missing in the archive.
	ReasonPITRGap Reason = "PITRGap"
	// ReasonPITRSilent: nothing is heard of the archiver in the active site's pod.
	ReasonPITRSilent Reason = "PITRSilent"
	// ReasonPITRNoSite: no site is active, and nothing is written that could be archived.
	ReasonPITRNoSite Reason = "PITRNoSite"
	// ReasonPITRFailing: the archiver tries and does not come further, for a reason of its own; its message says why.
	ReasonPITRFailing Reason = "PITRFailing"
	// ReasonPITRHolding: the sites are kept from purging binary logs, because the archive does not have them yet.
	ReasonPITRHolding Reason = "PITRHolding"
	// ReasonPITRReleased: the sites purge binary logs again, because the archive has them.
	ReasonPITRReleased Reason = "PITRReleased"
	// ReasonPITRVolumeFull: the sites purge binary logs although the archive does not have them: the volume is nearly full.
	ReasonPITRVolumeFull Reason = "PITRVolumeFull"
)
