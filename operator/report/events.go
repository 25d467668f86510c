// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Event is one row of the table of events: something that happened once. Its note is given when it is emitted, in
// the past tense, with the cause and the next command.
type Event struct {
	// Reason is what programs match.
	Reason string
	// Type is Normal or Warning.
	Type string
	// Action is what the operator did about it.
	Action string
	// Meaning is for the documentation.
	Meaning string
}

// The events of failover and of the sites.
var (
	ActiveSiteChosen   = normal("ActiveSiteChosen", "Promote", "The first active site of the group was chosen.")
	FailoverStarted    = warning("FailoverStarted", "Failover", "The operator began to move the role of the active site.")
	FencedOldPrimary   = normal("FencedOldPrimary", "Fence", "The old active site was proven to accept no writes.")
	Promoted           = normal("Promoted", "Promote", "A site was opened for writes.")
	FailoverCompleted  = normal("FailoverCompleted", "Failover", "The role of the active site was moved.")
	FailoverBlocked    = warning("FailoverBlocked", "Wait", "A failover is due, but it is not safe or not allowed.")
	FailoverForced     = warning("FailoverForced", "Failover", "A person overrode a blocked failover; writes may be lost.")
	PlannedRefused     = warning("PlannedFailoverRefused", "Refuse", "A planned failover was refused before anything changed.")
	PlannedReverted    = warning("PlannedFailoverReverted", "Reopen", "A planned failover did not finish; the source was reopened.")
	PlannedWaiting     = normal("PlannedFailoverWaiting", "Wait", "A planned failover waits for its target to catch up; nothing was changed yet.")
	PlannedBlocked     = warning("PlannedFailoverBlocked", "Wait", "The active site is about to go, and its role cannot be moved away.")
	ActiveSiteReopened = normal("ActiveSiteReopened", "Promote", "The active site came back, held everything and was reopened.")
	ClientsCannotWrite = warning("ClientsCannotWrite", "Observe", "The active site is open, but a write as a client makes it does not succeed.")
	ClientsCanWrite    = normal("ClientsCanWrite", "Observe", "A write as a client makes it succeeds again.")
	RowsNotCloned      = warning("RowsNotCloned", "Observe", "The active site has tables with rows outside InnoDB, which a clone does not copy; or a replica was cloned without such rows.")
	WriterFenced       = warning("WriterFenced", "Fence", "A site that is not the active site was writable and was fenced.")
	SiteDiverged       = warning("SiteDiverged", "Hold", "A site has transactions that the active site lacks; it is held for a person.")
	SiteAttached       = normal("SiteAttached", "Attach", "A site replicates from the active site.")
	SiteUnreachable    = warning("SiteUnreachable", "Observe", "A site stopped answering.")
	SiteReachable      = normal("SiteReachable", "Observe", "A site answers again.")
	AllUnreachable     = warning("AllSitesUnreachable", "Wait", "No site of the group answers; nothing is done.")
)

// The events of releases of the operator.
var (
	ClaimRefused   = warning("GroupClaimedElsewhere", "Leave", "This release of the operator sees the group, and leaves it alone: another one operates it, or is to operate it.")
	GroupTakenOver = warning("GroupTakenOver", "TakeOver", "Another release of the operator took the group over, because the one that operated it no longer leads.")
	HandOverWaits  = warning("HandOverWaits", "Wait", "The group is to be operated by another release of the operator, and cannot be handed over yet.")
)

// The events of provisioning and of the Kubernetes objects.
var (
	SiteCloning           = normal("SiteCloning", "Clone", "A site began to clone its data from the active site.")
	SiteCloned            = normal("SiteCloned", "Clone", "A site finished to clone its data from the active site.")
	SiteCloneFailed       = warning("SiteCloneFailed", "Clone", "A clone did not succeed; it is tried again.")
	SiteCloneWaits        = warning("SiteCloneWaits", "Wait", "A clone must not begin yet: the active site's data dictionary is not encrypted behind a checkpoint.")
	SiteCloneRefused      = warning("SiteCloneRefused", "Refuse", "A site needs a clone, which would destroy data that may be needed.")
	SiteStranded          = warning("SiteStranded", "Clone", "A site can no longer catch up, because transactions were purged; it is cloned anew.")
	SiteVolumeReplaced    = warning("SiteVolumeReplaced", "Clone", "A site came back with another data volume; it is cloned anew.")
	ActiveVolumeReplaced  = warning("ActiveVolumeReplaced", "Hold", "The active site came back with another data volume; its data is gone, and it is held for a person.")
	SiteProvisioned       = normal("SiteProvisioned", "Provision", "The data of a site became part of the group.")
	SiteUpdating          = normal("SiteUpdating", "Update", "The pod of a site is replaced by one of the new specification.")
	SiteRemoved           = normal("SiteRemoved", "Remove", "The objects of a site that left the specification were removed.")
	SiteRemovalRefused    = warning("SiteRemovalRefused", "Refuse", "The active site, or one to or from which the role is moving, left the specification; it is kept until another site is active. Or its keyring is not in escrow yet.")
	ConfigKeysIgnored     = warning("ConfigKeysIgnored", "Ignore", "spec.mysqlConf has settings that are not passed on: docs/reference/mysql-conf.md.")
	ImageNotAllowed       = warning("ImageNotAllowed", "Refuse", "spec.image is not among the images that the installation allows; sites keep the image that they have.")
	TLSSecretMissing      = warning("TLSSecretMissing", "Wait", "The Secret with the group's certificate is missing or unusable.")
	TLSSecretNotMeant     = warning("TLSSecretNotMeant", "Refuse", "The Secret of spec.tls is there for others too, and is not marked as one that the group may use.")
	CertificateNotRenewed = warning("CertificateNotRenewed", "Wait", "A site shows a certificate that ends soon, or cannot take the one in the Secret.")
	CertManagerMissing    = warning("CertManagerMissing", "Wait", "spec.tls.issuerRef is set, but cert-manager is not installed.")
	AuthorityReplaced     = warning("AuthorityReplaced", "Create", "The key that signs statements was missing and was made anew: see docs/fence.md.")
	ConfigRestored        = warning("ConfigRestored", "Restore", "The ConfigMap of a site was changed by somebody else, and was put right.")
	AccountsMissing       = warning("AccountsSecretMissing", "Wait", "The Secret with the operator's MySQL passwords is missing or incomplete.")
	FeaturesUnbuilt       = warning("FeaturesUnbuilt", "Ignore", "The specification asks for features that this version does not have.")
	GroupDataKept         = warning("GroupDataKept", "Retain", "The group was deleted; its volumes and Secrets stay.")
	GroupDataRemoved      = normal("GroupDataRemoved", "Delete", "The group was deleted, together with its volumes and Secrets.")
	ObjectRefused         = warning("ObjectRefused", "Retry", "The API server refused an object of the group.")
	ForeignObjectInPlay   = warning("ForeignObject", "Refuse", "An object with a name that the group needs belongs to somebody else.")
)

func normal(reason, action, meaning string) Event {
	return add(Event{Reason: reason, Type: corev1.EventTypeNormal, Action: action, Meaning: meaning})
}

func warning(reason, action, meaning string) Event {
	return add(Event{Reason: reason, Type: corev1.EventTypeWarning, Action: action, Meaning: meaning})
}

var table []Event

func add(e Event) Event {
	table = append(table, e)
	return e
}

// Table returns every event the operator can emit, in the order of this file.
func Table() []Event { return append([]Event(nil), table...) }

// maxNote is the longest note that events.k8s.io/v1 accepts, in bytes.
const maxNote = 1024

// Recorder emits events. The zero value and nil drop them, which tests of other things rely on.
type Recorder struct {
	sink events.EventRecorder
}

// NewRecorder makes a Recorder over the recorder of a manager (mgr.GetEventRecorder).
func NewRecorder(sink events.EventRecorder) *Recorder { return &Recorder{sink: sink} }

// Emit says that something happened to the group. Related is the pod or other object it happened to; nil when there
// is none.
func (r *Recorder) Emit(group, related runtime.Object, e Event, format string, args ...any) {
	if r == nil || r.sink == nil {
		return
	}
	note := fmt.Sprintf(format, args...)
	if len(note) > maxNote {
		note = note[:maxNote-3] + "..."
	}
	r.sink.Eventf(group, related, e.Type, e.Reason, e.Action, "%s", note)
}
