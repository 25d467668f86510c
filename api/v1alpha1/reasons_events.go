// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of events. Those that name a state are reasons of conditions too.
const (
	// ReasonActiveSiteChosen: the first active site of the group was chosen.
	ReasonActiveSiteChosen Reason = "ActiveSiteChosen"
	// ReasonFailoverStarted: the operator began to move the role of the active site.
	ReasonFailoverStarted Reason = "FailoverStarted"
	// ReasonFencedOldPrimary: the old active site was proven to accept no writes.
	ReasonFencedOldPrimary Reason = "FencedOldPrimary"
	// ReasonPromoted: a site was opened for writes.
	ReasonPromoted Reason = "Promoted"
	// ReasonFailoverCompleted: the role of the active site was moved.
	ReasonFailoverCompleted Reason = "FailoverCompleted"
	// ReasonFailoverBlocked: a failover is due, but it is not safe or not allowed.
	ReasonFailoverBlocked Reason = "FailoverBlocked"
	// ReasonFailoverForced: a person overrode a blocked failover; writes may be lost.
	ReasonFailoverForced Reason = "FailoverForced"
	// ReasonForceFailoverRefused: an order to fail over and accept loss was refused; nothing was changed.
	ReasonForceFailoverRefused Reason = "ForceFailoverRefused"
	// ReasonPlannedFailoverRefused: a planned failover was refused before anything changed.
	ReasonPlannedFailoverRefused Reason = "PlannedFailoverRefused"
	// ReasonPlannedFailoverReverted: a planned failover did not finish; the source was reopened.
	ReasonPlannedFailoverReverted Reason = "PlannedFailoverReverted"
	// ReasonPlannedFailoverWaiting: a planned failover waits for its target to catch up; nothing was changed yet.
	ReasonPlannedFailoverWaiting Reason = "PlannedFailoverWaiting"
	// ReasonPlannedFailoverBlocked: the active site is about to go, and its role cannot be moved away.
	ReasonPlannedFailoverBlocked Reason = "PlannedFailoverBlocked"
	// ReasonActiveSiteReopened: the active site came back, held everything and was reopened.
	ReasonActiveSiteReopened Reason = "ActiveSiteReopened"
	// ReasonClientsCannotWrite: the active site is open, but a write as a client makes it does not succeed.
	ReasonClientsCannotWrite Reason = "ClientsCannotWrite"
	// ReasonClientsCanWrite: a write as a client makes it succeeds again.
	ReasonClientsCanWrite Reason = "ClientsCanWrite"
	// ReasonRowsNotCloned: the active site has tables with rows outside InnoDB, which a clone does not copy; or a replica was cloned without
	// such rows.
	ReasonRowsNotCloned Reason = "RowsNotCloned"
	// ReasonWriterFenced: a site that is not the active site was writable and was fenced.
	ReasonWriterFenced Reason = "WriterFenced"
	// ReasonSiteDiverged: a site has transactions that the active site lacks; it is held for a person.
	ReasonSiteDiverged Reason = "SiteDiverged"
	// ReasonSiteAttached: a site replicates from the active site.
	ReasonSiteAttached Reason = "SiteAttached"
	// ReasonSiteUnreachable: a site stopped answering.
	ReasonSiteUnreachable Reason = "SiteUnreachable"
	// ReasonSiteReachable: a site answers again.
	ReasonSiteReachable Reason = "SiteReachable"
	// ReasonAllSitesUnreachable: no site of the group answers; nothing is done.
	ReasonAllSitesUnreachable Reason = "AllSitesUnreachable"
	// ReasonGroupClaimedElsewhere: this release of the operator sees the group, and leaves it alone: another one operates it, or is to
	// operate it.
	ReasonGroupClaimedElsewhere Reason = "GroupClaimedElsewhere"
	// ReasonGroupTakenOver: another release of the operator took the group over, because the one that operated it no longer leads.
	ReasonGroupTakenOver Reason = "GroupTakenOver"
	// ReasonHandOverWaits: the group is to be operated by another release of the operator, and cannot be handed over yet.
	ReasonHandOverWaits Reason = "HandOverWaits"
	// ReasonSiteCloning: a site began to clone its data from the active site.
	ReasonSiteCloning Reason = "SiteCloning"
	// ReasonSiteCloned: a site finished to clone its data from the active site.
	ReasonSiteCloned Reason = "SiteCloned"
	// ReasonSiteCloneFailed: a clone did not succeed; it is tried again.
	ReasonSiteCloneFailed Reason = "SiteCloneFailed"
	// ReasonSiteCloneWaits: a clone must not begin yet: the active site's data dictionary is not encrypted behind a checkpoint.
	ReasonSiteCloneWaits Reason = "SiteCloneWaits"
	// ReasonSiteCloneRefused: a site needs a clone, which would destroy data that may be needed.
	ReasonSiteCloneRefused Reason = "SiteCloneRefused"
	// ReasonSiteStranded: a site can no longer catch up, because transactions were purged; it is cloned again.
	ReasonSiteStranded Reason = "SiteStranded"
	// ReasonSiteVolumeReplaced: a site came back with another data volume; it is cloned again.
	ReasonSiteVolumeReplaced Reason = "SiteVolumeReplaced"
	// ReasonActiveVolumeReplaced: the active site came back with another data volume; its data is gone, and it is held for a person.
	ReasonActiveVolumeReplaced Reason = "ActiveVolumeReplaced"
	// ReasonSiteProvisioned: the data of a site became part of the group.
	ReasonSiteProvisioned Reason = "SiteProvisioned"
	// ReasonSiteUpdating: the pod of a site is replaced by one of the new specification.
	ReasonSiteUpdating Reason = "SiteUpdating"
	// ReasonSiteRemoved: the objects of a site that left the specification were removed.
	ReasonSiteRemoved Reason = "SiteRemoved"
	// ReasonSiteRemovalRefused: the active site, or one to or from which the role is moving, left the specification; it is kept until
	// another site is active. Or its keyring is not in escrow yet.
	ReasonSiteRemovalRefused Reason = "SiteRemovalRefused"
	// ReasonConfigKeysIgnored: spec.mysqlConf has settings that are not passed on: docs/reference/mysql-conf.md.
	ReasonConfigKeysIgnored Reason = "ConfigKeysIgnored"
	// ReasonImageNotAllowed: spec.image is not among the images that the installation allows; sites keep the image that they have.
	ReasonImageNotAllowed Reason = "ImageNotAllowed"
	// ReasonRecipientMalformed: an age recipient of a backup profile cannot be used; the archiver keeps those that it has.
	ReasonRecipientMalformed Reason = "RecipientMalformed"
	// ReasonTLSSecretMissing: the Secret with the group's certificate is missing or unusable.
	ReasonTLSSecretMissing Reason = "TLSSecretMissing"
	// ReasonTLSSecretNotMeant: the Secret of spec.tls is there for others too, and is not marked as one that the group may use.
	ReasonTLSSecretNotMeant Reason = "TLSSecretNotMeant"
	// ReasonCertificateNotRenewed: a site shows a certificate that ends soon, or cannot take the one in the Secret.
	ReasonCertificateNotRenewed Reason = "CertificateNotRenewed"
	// ReasonCertificateMade: the operator made a server certificate for the group, or renewed it.
	ReasonCertificateMade Reason = "CertificateMade"
	// ReasonCertificateAuthorityMade: the operator made an authority for the group's certificate.
	ReasonCertificateAuthorityMade Reason = "CertificateAuthorityMade"
	// ReasonCertificateAuthorityReplaced: another authority signs the group's certificates from now on, or the former one left ca.crt.
	ReasonCertificateAuthorityReplaced Reason = "CertificateAuthorityReplaced"
	// ReasonCertificateAuthorityDamaged: the Secret with the group's authority is damaged; see TLSReady.
	ReasonCertificateAuthorityDamaged Reason = "CertificateAuthorityDamaged"
	// ReasonCertificateSecretForeign: a Secret of the name that the operator keeps the group's certificate under belongs to somebody else; see TLSReady.
	ReasonCertificateSecretForeign Reason = "CertificateSecretForeign"
	// ReasonCertificateRotationRefused: an order for another certificate makes no sense, or not for this group.
	ReasonCertificateRotationRefused Reason = "CertificateRotationRefused"
	// ReasonCertManagerMissing: spec.tls.issuerRef is set, but cert-manager is not installed.
	ReasonCertManagerMissing Reason = "CertManagerMissing"
	// ReasonAuthorityReplaced: the key that signs statements was missing and was made again: see docs/internals/fence.md.
	ReasonAuthorityReplaced Reason = "AuthorityReplaced"
	// ReasonConfigRestored: the ConfigMap of a site was changed by somebody else, and was put right.
	ReasonConfigRestored Reason = "ConfigRestored"
	// ReasonAccountsSecretMissing: the Secret with the operator's MySQL passwords is missing or incomplete.
	ReasonAccountsSecretMissing Reason = "AccountsSecretMissing"
	// ReasonRootSecretMissing: the Secret with the password of root@localhost is missing or empty, and no new password is made.
	ReasonRootSecretMissing Reason = "RootSecretMissing"
	// ReasonFeaturesUnbuilt: the specification asks for features that this version does not have.
	ReasonFeaturesUnbuilt Reason = "FeaturesUnbuilt"
	// ReasonGroupDataKept: the group was deleted; its volumes and Secrets stay.
	ReasonGroupDataKept Reason = "GroupDataKept"
	// ReasonGroupDataRemoved: the group was deleted, together with its volumes and Secrets.
	ReasonGroupDataRemoved Reason = "GroupDataRemoved"
	// ReasonObjectRefused: the API server refused an object of the group.
	ReasonObjectRefused Reason = "ObjectRefused"
	// ReasonForeignObject: an object with a name that the group needs belongs to somebody else.
	ReasonForeignObject Reason = "ForeignObject"
	// ReasonKeyringUnsealed: the keyring of a site can be written, for a bootstrap, a clone or a rotation.
	ReasonKeyringUnsealed Reason = "KeyringUnsealed"
	// ReasonKeyringEscrowed: the keyring of a site is in escrow, in an immutable Secret.
	ReasonKeyringEscrowed Reason = "KeyringEscrowed"
	// ReasonKeyringSealed: the keyring of a site is sealed: MySQL cannot change it.
	ReasonKeyringSealed Reason = "KeyringSealed"
	// ReasonKeyringEscrowMissing: the escrow Secret of a sealed site is gone or changed; its pod is never restarted.
	ReasonKeyringEscrowMissing Reason = "KeyringEscrowMissing"
	// ReasonKeyringEscrowRestored: the escrow Secret of a site is there again, with its digest.
	ReasonKeyringEscrowRestored Reason = "KeyringEscrowRestored"
	// ReasonKeyringNotEscrowed: the keyring of a site was not escrowed in time; it stays unsealed, and the operator keeps trying.
	ReasonKeyringNotEscrowed Reason = "KeyringNotEscrowed"
	// ReasonKeyringLost: a site lost its keyring with its pod; it is cloned again.
	ReasonKeyringLost Reason = "KeyringLost"
	// ReasonKeyringFound: a site starts with the keyring that is in escrow for it.
	ReasonKeyringFound Reason = "KeyringFound"
	// ReasonKeyringRotated: both master keys of a site were rotated.
	ReasonKeyringRotated Reason = "KeyringRotated"
	// ReasonKeyringRotationFailed: the master keys of a site were not rotated, or not both; it is tried again.
	ReasonKeyringRotationFailed Reason = "KeyringRotationFailed"
	// ReasonKeyringRotationRefused: a rotation was asked for and refused; nothing was changed.
	ReasonKeyringRotationRefused Reason = "KeyringRotationRefused"
	// ReasonKeyringCampaignBegan: the rotation of all sites was asked for, and begins.
	ReasonKeyringCampaignBegan Reason = "KeyringCampaignBegan"
	// ReasonKeyringCampaignWaits: the rotation of all sites waits for something, for longer than a minute; or one of its steps takes longer
	// than half an hour.
	ReasonKeyringCampaignWaits Reason = "KeyringCampaignWaits"
	// ReasonKeyringCampaignDone: all sites that were asked for have new master keys.
	ReasonKeyringCampaignDone Reason = "KeyringCampaignDone"
	// ReasonKeyringCampaignStopped: the rotation of all sites was cancelled, or cannot go on; those that are done keep their new keys.
	ReasonKeyringCampaignStopped Reason = "KeyringCampaignStopped"
	// ReasonDeletionWaits: the keyring of a site whose volume stays is not in escrow yet, or the operator has no escrow listener any more
	// and cannot let go of keyrings; the deletion waits.
	ReasonDeletionWaits Reason = "DeletionWaits"
	// ReasonKeyringLeftBehind: a group or a site was removed before the keyring of a volume that stays came into escrow; it may be readable
	// by nobody.
	ReasonKeyringLeftBehind Reason = "KeyringLeftBehind"
	// ReasonEncryptionAdopted: a site that served without encryption is encrypted from now on; what exists stays in the clear.
	ReasonEncryptionAdopted Reason = "EncryptionAdopted"
	// ReasonEncryptionAdoptionRefused: encryption was turned on for a group that serves; existing tablespaces would stay plaintext, and
	// nothing was changed.
	ReasonEncryptionAdoptionRefused Reason = "EncryptionAdoptionRefused"
	// ReasonPasswordsRotating: new passwords are given to accounts of the operator; the old ones stay valid meanwhile.
	ReasonPasswordsRotating Reason = "PasswordsRotating"
	// ReasonPasswordsRotated: passwords of the operator's accounts were replaced; the old ones are refused on every site.
	ReasonPasswordsRotated Reason = "PasswordsRotated"
	// ReasonPasswordRotationRefused: a replacement of passwords was asked for and refused; nothing was changed.
	ReasonPasswordRotationRefused Reason = "PasswordRotationRefused"
	// ReasonPasswordRotationStuck: the active site refuses passwords that are in the Secret, or did not take a change; it is tried again.
	ReasonPasswordRotationStuck Reason = "PasswordRotationStuck"
	// ReasonPasswordEdited: somebody wrote another password into the Secret; the servers are given it, and the old one stays in use until
	// they have it.
	ReasonPasswordEdited Reason = "PasswordEdited"
	// ReasonPasswordEditUndone: somebody wrote a password that cannot be used, or one while it is being replaced; the Secret is as before.
	ReasonPasswordEditUndone Reason = "PasswordEditUndone"
	// ReasonRecloneAccepted: a site is about to be cloned again, as a person or spec.failover.onDivergence orders.
	ReasonRecloneAccepted Reason = "RecloneAccepted"
	// ReasonRecloneRefused: a reclone was asked for and refused; nothing was changed.
	ReasonRecloneRefused Reason = "RecloneRefused"
	// ReasonRecloneWaits: spec.failover.onDivergence would clone a diverged site again, but it is the only other copy; a person decides.
	ReasonRecloneWaits Reason = "RecloneWaits"
	// ReasonRecloneDone: a site was cloned again as ordered, and its data is part of the group.
	ReasonRecloneDone Reason = "RecloneDone"
	// ReasonDNSSwitched: the DNS name was pointed to the active site.
	ReasonDNSSwitched Reason = "DNSSwitched"
	// ReasonDNSFailed: the DNS name does not follow the active site, or will not after the next failover.
	ReasonDNSFailed Reason = "DNSFailed"
	// ReasonTaintsFailed: the taints on the nodes do not follow the active site.
	ReasonTaintsFailed Reason = "TaintsFailed"
	// ReasonSiteAskedToLeave: only the active site is left to update; its role is moved away first.
	ReasonSiteAskedToLeave Reason = "SiteAskedToLeave"
	// ReasonSiteNotBack: a site has the pod that is specified and does not come back; no other site is updated.
	ReasonSiteNotBack Reason = "SiteNotBack"
	// ReasonPauseUnreadable: the annotation pause-until holds no time; the group is not paused.
	ReasonPauseUnreadable Reason = "PauseUnreadable"
	// ReasonVolumeGrowing: the data volume of a site is being made larger.
	ReasonVolumeGrowing Reason = "VolumeGrowing"
	// ReasonVolumeCannotGrow: the data volume of a site should be larger, and its storage does not allow that.
	ReasonVolumeCannotGrow Reason = "VolumeCannotGrow"
	// ReasonVolumeLarger: the data volume of a site is larger than specified; volumes do not shrink.
	ReasonVolumeLarger Reason = "VolumeLarger"
	// ReasonVolumeTerminating: the volume claim of a site is being deleted, so the data of the site is gone as soon as its pod ends.
	ReasonVolumeTerminating Reason = "VolumeTerminating"
)
