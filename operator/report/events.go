// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Event is one row of the table of events: something that happened once. Its note is given when it is emitted, in
// the past tense, with the cause and the next command.
type Event struct {
	// Reason is what programs match; its comment in api/v1alpha1 says what happened.
	Reason v1alpha1.Reason
	// Type is Normal or Warning.
	Type string
	// Action is what the operator did about it.
	Action string
}

// The events of failover and of the sites.
var (
	ActiveSiteChosen   = normal(v1alpha1.ReasonActiveSiteChosen, "Promote")
	FailoverStarted    = warning(v1alpha1.ReasonFailoverStarted, "Failover")
	FencedOldPrimary   = normal(v1alpha1.ReasonFencedOldPrimary, "Fence")
	Promoted           = normal(v1alpha1.ReasonPromoted, "Promote")
	FailoverCompleted  = normal(v1alpha1.ReasonFailoverCompleted, "Failover")
	FailoverBlocked    = warning(v1alpha1.ReasonFailoverBlocked, "Wait")
	FailoverForced     = warning(v1alpha1.ReasonFailoverForced, "Failover")
	PlannedRefused     = warning(v1alpha1.ReasonPlannedFailoverRefused, "Refuse")
	PlannedReverted    = warning(v1alpha1.ReasonPlannedFailoverReverted, "Reopen")
	PlannedWaiting     = normal(v1alpha1.ReasonPlannedFailoverWaiting, "Wait")
	PlannedBlocked     = warning(v1alpha1.ReasonPlannedFailoverBlocked, "Wait")
	ActiveSiteReopened = normal(v1alpha1.ReasonActiveSiteReopened, "Promote")
	ClientsCannotWrite = warning(v1alpha1.ReasonClientsCannotWrite, "Observe")
	ClientsCanWrite    = normal(v1alpha1.ReasonClientsCanWrite, "Observe")
	RowsNotCloned      = warning(v1alpha1.ReasonRowsNotCloned, "Observe")
	WriterFenced       = warning(v1alpha1.ReasonWriterFenced, "Fence")
	SiteDiverged       = warning(v1alpha1.ReasonSiteDiverged, "Hold")
	SiteAttached       = normal(v1alpha1.ReasonSiteAttached, "Attach")
	SiteUnreachable    = warning(v1alpha1.ReasonSiteUnreachable, "Observe")
	SiteReachable      = normal(v1alpha1.ReasonSiteReachable, "Observe")
	AllUnreachable     = warning(v1alpha1.ReasonAllSitesUnreachable, "Wait")
)

// The events of releases of the operator.
var (
	ClaimRefused   = warning(v1alpha1.ReasonGroupClaimedElsewhere, "Leave")
	GroupTakenOver = warning(v1alpha1.ReasonGroupTakenOver, "TakeOver")
	HandOverWaits  = warning(v1alpha1.ReasonHandOverWaits, "Wait")
)

// The events of provisioning and of the Kubernetes objects.
var (
	SiteCloning           = normal(v1alpha1.ReasonSiteCloning, "Clone")
	SiteCloned            = normal(v1alpha1.ReasonSiteCloned, "Clone")
	SiteCloneFailed       = warning(v1alpha1.ReasonSiteCloneFailed, "Clone")
	SiteCloneWaits        = warning(v1alpha1.ReasonSiteCloneWaits, "Wait")
	SiteCloneRefused      = warning(v1alpha1.ReasonSiteCloneRefused, "Refuse")
	SiteStranded          = warning(v1alpha1.ReasonSiteStranded, "Clone")
	SiteVolumeReplaced    = warning(v1alpha1.ReasonSiteVolumeReplaced, "Clone")
	ActiveVolumeReplaced  = warning(v1alpha1.ReasonActiveVolumeReplaced, "Hold")
	SiteProvisioned       = normal(v1alpha1.ReasonSiteProvisioned, "Provision")
	SiteUpdating          = normal(v1alpha1.ReasonSiteUpdating, "Update")
	SiteRemoved           = normal(v1alpha1.ReasonSiteRemoved, "Remove")
	SiteRemovalRefused    = warning(v1alpha1.ReasonSiteRemovalRefused, "Refuse")
	ConfigKeysIgnored     = warning(v1alpha1.ReasonConfigKeysIgnored, "Ignore")
	ImageNotAllowed       = warning(v1alpha1.ReasonImageNotAllowed, "Refuse")
	TLSSecretMissing      = warning(v1alpha1.ReasonTLSSecretMissing, "Wait")
	TLSSecretNotMeant     = warning(v1alpha1.ReasonTLSSecretNotMeant, "Refuse")
	CertificateNotRenewed = warning(v1alpha1.ReasonCertificateNotRenewed, "Wait")
	CertManagerMissing    = warning(v1alpha1.ReasonCertManagerMissing, "Wait")
	AuthorityReplaced     = warning(v1alpha1.ReasonAuthorityReplaced, "Create")
	ConfigRestored        = warning(v1alpha1.ReasonConfigRestored, "Restore")
	AccountsMissing       = warning(v1alpha1.ReasonAccountsSecretMissing, "Wait")
	FeaturesUnbuilt       = warning(v1alpha1.ReasonFeaturesUnbuilt, "Ignore")
	GroupDataKept         = warning(v1alpha1.ReasonGroupDataKept, "Retain")
	GroupDataRemoved      = normal(v1alpha1.ReasonGroupDataRemoved, "Delete")
	ObjectRefused         = warning(v1alpha1.ReasonObjectRefused, "Retry")
	ForeignObjectInPlay   = warning(v1alpha1.ReasonForeignObject, "Refuse")
)

func normal(reason v1alpha1.Reason, action string) Event {
	return add(Event{Reason: reason, Type: corev1.EventTypeNormal, Action: action})
}

func warning(reason v1alpha1.Reason, action string) Event {
	return add(Event{Reason: reason, Type: corev1.EventTypeWarning, Action: action})
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
	r.sink.Eventf(group, related, e.Type, string(e.Reason), e.Action, "%s", note)
}
