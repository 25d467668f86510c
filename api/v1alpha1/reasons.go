// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reason says in one CamelCase word why something is as it is. Conditions, events, decisions, refusals, logs, metrics and the command
// line use the same words. Each is declared here once and stands nowhere else as text; docs/reference/signals.md is made from the comments.
type Reason string

// Reasons of conditions, and of what an update of the pods waits for.
const (
	// ReasonAsExpected: nothing is wrong, and nothing is under way.
	ReasonAsExpected Reason = "AsExpected"
	// ReasonNotBuilt: the specification asks for a feature that this version does not have.
	ReasonNotBuilt Reason = "NotBuilt"
	// ReasonCreating: objects or pods of sites are being made.
	ReasonCreating Reason = "Creating"
	// ReasonUpdating: the pod of a site is being replaced by one of the new specification.
	ReasonUpdating Reason = "Updating"
	// ReasonProvisioning: a site gets its data, or waits for it.
	ReasonProvisioning Reason = "Provisioning"
	// ReasonWaitingForSite: a site must come back before the work goes on.
	ReasonWaitingForSite Reason = "WaitingForSite"
	// ReasonWaitingForTLS: pods wait for a usable certificate.
	ReasonWaitingForTLS Reason = "WaitingForTLS"
	// ReasonWaitingForKeyring: a site that is to be removed waits until its keyring is in escrow.
	ReasonWaitingForKeyring Reason = "WaitingForKeyring"
	// ReasonReconcileError: the last pass over the objects of the group ended with an error; it is tried again.
	ReasonReconcileError Reason = "ReconcileError"
	// ReasonActiveSiteKept: the active site left the specification, and is kept until another site is active.
	ReasonActiveSiteKept Reason = "ActiveSiteKept"
	// ReasonLeavingSiteKept: a site left the specification, and is kept because its data may be needed yet.
	ReasonLeavingSiteKept Reason = "LeavingSiteKept"
	// ReasonCloneRefused: a site needs a clone, which would destroy data that may be needed.
	ReasonCloneRefused Reason = "CloneRefused"
	// ReasonSecretIncomplete: a Secret that the operator needs lacks a key.
	ReasonSecretIncomplete Reason = "SecretIncomplete"
	// ReasonMovingRole: only the active site is left to update, and its role is moved away first.
	ReasonMovingRole Reason = "MovingRole"
	// ReasonRoleStays: the active site is to be updated, and a rule keeps its role where it is.
	ReasonRoleStays Reason = "RoleStays"
	// ReasonNoCandidate: the active site is to be updated, and no other site is fit to take its role.
	ReasonNoCandidate Reason = "NoCandidate"
	// ReasonKeyringKept: the memory of a pod holds the only copy of a keyring, so the pod is not replaced.
	ReasonKeyringKept Reason = "KeyringKept"
	// ReasonPodKept: the memory of a pod holds what would be lost with it, so the rollout does not replace the pod.
	ReasonPodKept Reason = "PodKept"
	// ReasonUpToDate: every site has the pod that is specified.
	ReasonUpToDate Reason = "UpToDate"
	// ReasonRepairing: the pod of a broken site is replaced out of turn.
	ReasonRepairing Reason = "Repairing"
	// ReasonUpdatingActive: the pod of the active site is replaced, because no other site may ever take its role.
	ReasonUpdatingActive Reason = "UpdatingActive"
	// ReasonFailoverInFlight: the rollout waits until the role has moved.
	ReasonFailoverInFlight Reason = "FailoverInFlight"
	// ReasonLongWorkInFlight: the rollout waits until a clone, a keyring or the load of a backup is done.
	ReasonLongWorkInFlight Reason = "LongWorkInFlight"
	// ReasonSecretMissing: the Secret with the group's certificate is missing.
	ReasonSecretMissing Reason = "SecretMissing"
	// ReasonSecretUnusable: the Secret with the group's certificate holds no usable certificate.
	ReasonSecretUnusable Reason = "SecretUnusable"
	// ReasonCertificateAuthorityUnusable: the Secret with the authority that the operator made for the group is damaged.
	ReasonCertificateAuthorityUnusable Reason = "CertificateAuthorityUnusable"
	// ReasonCertificateAuthorityChanging: the authority of the group's certificate is being replaced, in steps.
	ReasonCertificateAuthorityChanging Reason = "CertificateAuthorityChanging"
	// ReasonWrongNames: the certificate does not name every site.
	ReasonWrongNames Reason = "WrongNames"
	// ReasonSecretNotMeant: the Secret is there for others too, and nobody who may edit it has said that the group may use it.
	ReasonSecretNotMeant Reason = "SecretNotMeant"
	// ReasonSettingsRefused: spec.mysqlConf has settings that are not passed on.
	ReasonSettingsRefused Reason = "SettingsRefused"
	// ReasonBootstrapping: no site of the group is active yet.
	ReasonBootstrapping Reason = "Bootstrapping"
	// ReasonActiveSiteOpen: the active site accepts writes.
	ReasonActiveSiteOpen Reason = "ActiveSiteOpen"
	// ReasonActiveSiteFenced: the active site answers and is read-only.
	ReasonActiveSiteFenced Reason = "ActiveSiteFenced"
	// ReasonAllSitesSilent: no site of the group answers.
	ReasonAllSitesSilent Reason = "AllSitesSilent"
	// ReasonFailingOver: the role of the active site is moving.
	ReasonFailingOver Reason = "FailingOver"
	// ReasonReplicating: every replica follows the active site.
	ReasonReplicating Reason = "Replicating"
	// ReasonReplicaNotAttached: a replica does not replicate from the active site.
	ReasonReplicaNotAttached Reason = "ReplicaNotAttached"
	// ReasonNotBlocked: nothing that is due is kept from happening.
	ReasonNotBlocked Reason = "NotBlocked"
	// ReasonNotPaused: nobody has paused the group.
	ReasonNotPaused Reason = "NotPaused"
	// ReasonNoneKeptFenced: nobody keeps a site fenced.
	ReasonNoneKeptFenced Reason = "NoneKeptFenced"
	// ReasonActiveStaysOpen: the site that a person wants to keep fenced is the active one and open, and stays so until it closes.
	ReasonActiveStaysOpen Reason = "ActiveStaysOpen"
	// ReasonPauseOver: the time in pause-until has passed.
	ReasonPauseOver Reason = "PauseOver"
	// ReasonInvalidPause: the annotation pause-until holds no time, so nothing is paused.
	ReasonInvalidPause Reason = "InvalidPause"
	// ReasonAllSealed: the keyring of every site is sealed.
	ReasonAllSealed Reason = "AllSealed"
	// ReasonNotSealed: the keyring of a site can be written, or is about to be.
	ReasonNotSealed Reason = "NotSealed"
	// ReasonPartialCoverage: something that the specification wants encrypted is still in the clear.
	ReasonPartialCoverage Reason = "PartialCoverage"
	// ReasonEscrowListenerMissing: the operator has no escrow listener, which keyrings need.
	ReasonEscrowListenerMissing Reason = "EscrowListenerMissing"
	// ReasonExternalDNSMissing: the cluster does not know the kind DNSEndpoint.
	ReasonExternalDNSMissing Reason = "ExternalDNSMissing"
	// ReasonAddressMissing: the Service of the active site has no address to point the name to.
	ReasonAddressMissing Reason = "AddressMissing"
	// ReasonNameNotAllowed: spec.dns.name lies in no domain in which the installation publishes names.
	ReasonNameNotAllowed Reason = "NameNotAllowed"
	// ReasonForbidden: the operator lacks the right.
	ReasonForbidden Reason = "Forbidden"
	// ReasonWriteFailed: the API server did not take an object; it is tried again.
	ReasonWriteFailed Reason = "WriteFailed"
)

// Reasons of what the database and the account of an application wait for, beside those of passwords.
const (
	// ReasonApplicationMade: the database and the account were made. What became of them since is not looked at.
	ReasonApplicationMade Reason = "ApplicationMade"
	// ReasonApplicationRefused: the active site does not let the account of the application in, or not to its database.
	ReasonApplicationRefused Reason = "ApplicationRefused"
	// ReasonApplicationFailed: the active site did not make the database; it is tried again.
	ReasonApplicationFailed Reason = "ApplicationFailed"
	// ReasonApplicationSecret: the Secret of the application is missing, is somebody else's, lacks a key, has a password that MySQL does not
	// take, or is for another user or database.
	ReasonApplicationSecret Reason = "ApplicationSecret"
)

// Reasons of what a replacement of passwords waits for.
const (
	// ReasonLooking: the sites are being asked which passwords they take.
	ReasonLooking Reason = "Looking"
	// ReasonActiveSiteNotOpen: no site is open for writes, or the role is moving.
	ReasonActiveSiteNotOpen Reason = "ActiveSiteNotOpen"
	// ReasonSiteBehind: a site has not replicated the change of a password yet.
	ReasonSiteBehind Reason = "SiteBehind"
	// ReasonSiteBusy: a site is being given the group's data, or new keys.
	ReasonSiteBusy Reason = "SiteBusy"
	// ReasonSidecarBehind: a sidecar has not logged in with the new password yet.
	ReasonSidecarBehind Reason = "SidecarBehind"
	// ReasonReceiverBehind: the receiver of a replica has not been given the new password yet.
	ReasonReceiverBehind Reason = "ReceiverBehind"
	// ReasonSettling: what was read of the Secret before may be in use for some seconds yet.
	ReasonSettling Reason = "Settling"
	// ReasonPasswordRefused: a server refuses the password that is in the Secret.
	ReasonPasswordRefused Reason = "PasswordRefused"
	// ReasonChangeFailed: the active site did not take the change of a password; it is tried again.
	ReasonChangeFailed Reason = "ChangeFailed"
)

// Reasons that only the plugin gives: what it finds wrong with a group by itself, and what it does.
const (
	// ReasonNotObserved: the operator has not looked at the group yet.
	ReasonNotObserved Reason = "NotObserved"
	// ReasonOperatorDown: no operator leads, so nothing would fail over.
	ReasonOperatorDown Reason = "OperatorDown"
	// ReasonOperatorSilent: the operator says nothing of the group.
	ReasonOperatorSilent Reason = "OperatorSilent"
	// ReasonStale: the operator last looked at the group too long ago.
	ReasonStale Reason = "Stale"
	// ReasonNoActiveSite: no site may accept writes yet.
	ReasonNoActiveSite Reason = "NoActiveSite"
	// ReasonActiveSiteReadOnly: the active site does not accept writes.
	ReasonActiveSiteReadOnly Reason = "ActiveSiteReadOnly"
	// ReasonSeveralWritableSites: more than one site accepts writes.
	ReasonSeveralWritableSites Reason = "SeveralWritableSites"
	// ReasonSidecarSilent: the sidecar of a site does not answer, so the site could not be fenced.
	ReasonSidecarSilent Reason = "SidecarSilent"
	// ReasonSitePending: the site has no data yet.
	ReasonSitePending Reason = "SitePending"
	// ReasonSiteFenced: the site accepts no writes and does not replicate.
	ReasonSiteFenced Reason = "SiteFenced"
	// ReasonSiteDetached: the site does not replicate.
	ReasonSiteDetached Reason = "SiteDetached"
	// ReasonKeyringRecovered: kubectl mfg recover-keyring brought a keyring back into escrow.
	ReasonKeyringRecovered Reason = "KeyringRecovered"
	// ReasonNotAnswered: a request is gone from the group without an answer of the operator.
	ReasonNotAnswered Reason = "NotAnswered"
	// ReasonTooLate: what was withdrawn had begun already.
	ReasonTooLate Reason = "TooLate"
	// ReasonOvertaken: an order was carried out, and by now another site is active.
	ReasonOvertaken Reason = "Overtaken"
	// ReasonSiteUnfit: the site is in a state that this plugin does not know.
	ReasonSiteUnfit Reason = "SiteUnfit"
)
