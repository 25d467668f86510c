// SPDX-License-Identifier: Apache-2.0

// Package conditions makes conditions of what is true now, and keeps the time of their last transition.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Condition is a condition as somebody means it now: what is true, for the user. The message names the next step and
// carries no times, so that it never flaps.
type Condition struct {
	Type    string
	Status  metav1.ConditionStatus
	Reason  v1alpha1.Reason
	Message string
}

// True makes a condition that holds.
func True(kind string, reason v1alpha1.Reason, message string) Condition {
	return Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False makes a condition that does not hold.
func False(kind string, reason v1alpha1.Reason, message string) Condition {
	return Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown makes a condition of which nothing can be said.
func Unknown(kind string, reason v1alpha1.Reason, message string) Condition {
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
		Type: want.Type, Status: want.Status, Reason: string(want.Reason), Message: message,
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
