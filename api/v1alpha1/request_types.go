// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RequestKind is what a person asks for by an annotation of the group.
type RequestKind string

// The kinds of requests. Each has one annotation, and one place for its answer.
const (
	RequestPlannedFailover RequestKind = "PlannedFailover"
	RequestAbortFailover   RequestKind = "AbortFailover"
	RequestForceFailover   RequestKind = "ForceFailover"
	RequestRecloneSite     RequestKind = "RecloneSite"
	RequestRotateKeyring   RequestKind = "RotateKeyring"
	RequestRotatePasswords RequestKind = "RotatePasswords"
	RequestPromoteCache    RequestKind = "PromoteCache"
	// RequestRotateCertificate is about what the operator made for a group with tls: {}.
	RequestRotateCertificate RequestKind = "RotateCertificate"
)

// requestAnnotations are the annotations by which each kind is asked for.
var requestAnnotations = map[RequestKind]string{
	RequestPlannedFailover: AnnotationPlannedFailover,
	RequestAbortFailover:   AnnotationAbortFailover,
	RequestForceFailover:   AnnotationForceFailover,
	RequestRecloneSite:     AnnotationRecloneSite,
	RequestRotateKeyring:   AnnotationRotateKeyring,
	RequestRotatePasswords: AnnotationRotatePasswords,
	RequestPromoteCache:    AnnotationPromoteCache,

	RequestRotateCertificate: AnnotationRotateCertificate,
}

// RequestKinds are all kinds, in the order of their names.
func RequestKinds() []RequestKind { return slices.Sorted(maps.Keys(requestAnnotations)) }

// Annotation is the annotation by which a kind is asked for.
func (k RequestKind) Annotation() string { return requestAnnotations[k] }

// RequestOf is the kind that an annotation asks for; empty if it is no request.
func RequestOf(annotation string) RequestKind {
	for kind, its := range requestAnnotations {
		if its == annotation {
			return kind
		}
	}
	return ""
}

// IDAnnotation is the annotation beside a request that tells it from every other one of its kind. The asker sets it together
// with the request; where a person set only the request, the operator adds one. It goes away with the request.
func (k RequestKind) IDAnnotation() string { return k.Annotation() + "-id" }

// RequestOutcome is what came of a request.
type RequestOutcome string

// The outcomes of requests.
const (
	// RequestDone means that what was asked for is so now.
	RequestDone RequestOutcome = "Done"
	// RequestRefused means that nothing was begun.
	RequestRefused RequestOutcome = "Refused"
	// RequestFailed means that it was begun and taken back, or overtaken by something else.
	RequestFailed RequestOutcome = "Failed"
)

// Reasons of answers. Those to a planned failover are the reasons of status.plannedFailover.
const (
	// AnswerCompleted is the reason of every request that was done.
	AnswerCompleted = "Completed"

	// What is wrong with the words of a request.
	AnswerUnknownSite    = "UnknownSite"
	AnswerUnknownAccount = "UnknownAccount"
	AnswerNotCandidate   = "NotACandidate"
	AnswerNotUnderstood  = "NotUnderstood"

	// What the state of the group makes needless, or forbids.
	AnswerNothingToAbort = "NothingToAbort"
	AnswerAborted        = "Aborted"
	AnswerActiveSiteOpen = "ActiveSiteOpen"
	AnswerIsActiveSite   = "IsActiveSite"
	AnswerRoleMoving     = "RoleIsMoving"
	AnswerNotEncrypted   = "NotEncrypted"
	AnswerKeptFenced     = "KeptFenced"
	AnswerUpdateUnderWay = "UpdateUnderWay"
	// AnswerNoSuchCertificate: the operator makes no certificate for the group, or not that one.
	AnswerNoSuchCertificate = "NoSuchCertificate"

	// What is wrong with the site that is asked for.
	AnswerSiteNotAnswering = "SiteNotAnswering"
	AnswerSiteNeverStarts  = "SiteNeverStarts"
	AnswerSiteNotFenced    = "SiteNotFenced"
	AnswerSiteNotFollowing = "SiteNotFollowing"
	AnswerSiteDiverged     = "SiteDiverged"
	AnswerSiteWithoutData  = "SiteWithoutData"
	AnswerLossUnknown      = "LossUnknown"
	AnswerOnlyOtherCopy    = "OnlyOtherCopy"
	AnswerDataAtRisk       = "DataAtRisk"
	AnswerCloneUnderWay    = "CloneUnderWay"
	AnswerVolumeGoes       = "VolumeTerminating"
	AnswerOrderLapsed      = "OrderLapsed"

	// What is wrong with the site that would be cloned from.
	AnswerDonorNotOpen   = "DonorNotOpen"
	AnswerDonorNotWhole  = "DonorNotWhole"
	AnswerDonorLosesRows = "DonorLosesRows"

	// What is wrong with keyrings.
	AnswerKeyringMissing   = "KeyringMissing"
	AnswerKeyringNotSealed = "KeyringNotSealed"
	AnswerKeyringFull      = "KeyringFull"
	AnswerOtherKeyring     = "OtherKeyringNotSealed"

	// What keeps the rotation of all sites from going on.
	AnswerOtherRequest    = "OtherRequest"
	AnswerMoveRefused     = "MoveRefused"
	AnswerMoveWithdrawn   = "MoveWithdrawn"
	AnswerTooManyTries    = "TooManyTries"
	AnswerWithdrawn       = "Withdrawn"
	AnswerTargetNotReady  = "TargetNotReady"
	AnswerKeyringsUnknown = "KeyringsUnknown"
)

// confirmable are the reasons for which a new copy is refused unless a person gives up what the site alone has.
var confirmable = []string{
	AnswerKeyringMissing, AnswerSiteNeverStarts, AnswerDonorLosesRows, AnswerSiteDiverged, AnswerLossUnknown, AnswerOnlyOtherCopy,
	AnswerDataAtRisk,
}

// IsConfirmable is true for the reason of a refused RecloneSite that :confirm after the site overrides.
func IsConfirmable(reason string) bool { return slices.Contains(confirmable, reason) }

// LastRequest is the last answer to a request of one kind. Only the operator writes it, and only once the outcome is known: how
// far a request is that is under way stands in plannedFailover, transition, sites[].clone, encryptionAtRest, passwords, and the condition
// TLSReady.
type LastRequest struct {
	// kind of the request: PlannedFailover, AbortFailover, ForceFailover, RecloneSite, RotateKeyring, RotatePasswords, PromoteCache or
	// RotateCertificate.
	//
	// +required
	Kind RequestKind `json:"kind"`
	// id tells the request from others of its kind: the value of the annotation that ends in -id.
	//
	// +optional
	ID string `json:"id,omitempty"`
	// target is the value of the annotation that asked: a site, accounts, or what is to be replaced of the certificate.
	//
	// +optional
	Target string `json:"target,omitempty"`
	// outcome is Done, Refused (nothing was begun) or Failed (it was begun and taken back, or overtaken).
	//
	// +required
	Outcome RequestOutcome `json:"outcome"`
	// reason of the outcome, one CamelCase word.
	//
	// +required
	Reason string `json:"reason"`
	// message says it to people and names the next step.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// answeredAt is when the outcome was written.
	//
	// +required
	AnsweredAt metav1.MicroTime `json:"answeredAt"`
}

// LastRequest is the last answer to a request of a kind; nil if there was none.
func (s *MysqlFailoverGroupStatus) LastRequest(kind RequestKind) *LastRequest {
	for i := range s.LastRequests {
		if s.LastRequests[i].Kind == kind {
			return &s.LastRequests[i]
		}
	}
	return nil
}
