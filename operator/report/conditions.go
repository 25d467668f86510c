// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Reasons of conditions. Conditions, events, logs and the command line use the same words.
const (
	// ReasonAsExpected: nothing is wrong, nothing is under way.
	ReasonAsExpected = "AsExpected"

	// Progressing.
	ReasonCreating         = "Creating"
	ReasonUpdating         = "Updating"
	ReasonProvisioning     = "Provisioning"
	ReasonWaitingForSite   = "WaitingForSite"
	ReasonWaitingForTLS    = "WaitingForTLS"
	ReasonReconcileError   = "ReconcileError"
	ReasonDeleting         = "Deleting"
	ReasonActiveSiteKept   = "ActiveSiteKept"
	ReasonCloneRefused     = "CloneRefused"
	ReasonSecretIncomplete = "SecretIncomplete"
	ReasonForeignObject    = "ForeignObject"

	// TLSReady.
	ReasonTLSNotConfigured   = "NotConfigured"
	ReasonTLSSecretMissing   = "SecretMissing"
	ReasonTLSSecretUnusable  = "SecretUnusable"
	ReasonTLSWrongNames      = "WrongNames"
	ReasonCertManagerMissing = "CertManagerMissing"
	// ReasonTLSSecretNotMeant: the Secret is there for others too, and nobody who may edit it has said that the group may use it.
	ReasonTLSSecretNotMeant = "SecretNotMeant"
	// ReasonCertificateNotRenewed: a site shows a certificate that ends soon, or cannot take the one in the Secret.
	ReasonCertificateNotRenewed = "CertificateNotRenewed"

	// UnbuiltFeatures, EncryptionAtRestReady.
	ReasonNotBuilt   = "NotBuilt"
	ReasonNotEnabled = "NotEnabled"

	// SpecRefused. ReasonSettingsRefused: spec.mysqlConf has settings that are not passed on.
	ReasonSettingsRefused = "SettingsRefused"
	// ReasonImageNotAllowed: spec.image is not among the images that the installation allows. Of Progressing too.
	ReasonImageNotAllowed = "ImageNotAllowed"

	// Ready, Available, ReplicationHealthy, FailoverBlocked, Degraded.
	ReasonBootstrapping      = "Bootstrapping"
	ReasonActiveSiteOpen     = "ActiveSiteOpen"
	ReasonActiveSiteFenced   = "ActiveSiteFenced"
	ReasonActiveSiteSilent   = "ActiveSiteSilent"
	ReasonActiveSiteDown     = "ActiveSiteDown"
	ReasonAllSitesSilent     = "AllSitesSilent"
	ReasonFailingOver        = "FailingOver"
	ReasonReplicating        = "Replicating"
	ReasonReplicaNotAttached = "ReplicaNotAttached"
	ReasonSiteDiverged       = "SiteDiverged"
	ReasonSiteUnreachable    = "SiteUnreachable"
	ReasonNotBlocked         = "NotBlocked"

	// Ready, Available: the active site is open, and its write probe fails.
	ReasonOffline                 = wire.WriteOffline
	ReasonReadOnly                = wire.WriteReadOnly
	ReasonTooManyConnections      = wire.WriteTooManyConnections
	ReasonSecureTransportRequired = wire.WriteSecureTransport
	ReasonDiskFull                = wire.WriteDiskFull
	ReasonDiskStalled             = wire.WriteDiskStalled
	ReasonDiskFailed              = wire.WriteDiskFailed
	ReasonLocked                  = wire.WriteLocked
	ReasonWriteRefused            = wire.WriteRefused
	ReasonNoAnswer                = wire.WriteNoAnswer

	// Paused.
	ReasonPaused       = "Paused"
	ReasonNotPaused    = "NotPaused"
	ReasonPauseOver    = "PauseOver"
	ReasonInvalidPause = "InvalidPause"
)

// Condition is a condition as somebody means it now: what is true, for the user. The message names the next step and
// carries no times, so that it never flaps.
type Condition struct {
	Type    string
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// True makes a condition that holds.
func True(kind, reason, message string) Condition {
	return Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False makes a condition that does not hold.
func False(kind, reason, message string) Condition {
	return Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown makes a condition of which nothing can be said.
func Unknown(kind, reason, message string) Condition {
	return Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// maxMessage is a bound far below the 32768 bytes that the API allows: messages are read by people.
const maxMessage = 1024

// Stamp returns the wished condition as it belongs into status: the time of the last transition is that of the
// condition in place unless the status changed. Each owner of conditions applies only its own.
func Stamp(current []metav1.Condition, want Condition, generation int64, now time.Time) metav1.Condition {
	message := want.Message
	if len(message) > maxMessage {
		message = message[:maxMessage-3] + "..."
	}
	out := metav1.Condition{
		Type: want.Type, Status: want.Status, Reason: want.Reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	if old := meta.FindStatusCondition(current, want.Type); old != nil && old.Status == want.Status {
		out.LastTransitionTime = old.LastTransitionTime
	}
	return out
}

// Changed is true if a stamped condition differs from the one in place in what it says, which is when an event is due.
func Changed(current []metav1.Condition, stamped metav1.Condition) bool {
	old := meta.FindStatusCondition(current, stamped.Type)
	return old == nil || old.Status != stamped.Status || old.Reason != stamped.Reason || old.Message != stamped.Message
}
