// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// EventListKind is the kind of EventList.
const EventListKind = "MfgEventList"

// EventList are events, the oldest first.
type EventList struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Items      []Event `json:"items"`
}

// Event is an event about a group or one of its parts.
type Event struct {
	Time    time.Time `json:"time"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Object  string    `json:"object"`
	Message string    `json:"message"`
	Count   int32     `json:"count,omitempty"`
}

// groupKind is the kind of a group.
const groupKind = "MysqlFailoverGroup"

// objectOf names an object as Event does.
func objectOf(kind, name string) string { return kind + "/" + name }

// OfGroup is true for an event about the group itself.
func (e Event) OfGroup() bool {
	kind, _, _ := strings.Cut(e.Object, "/")
	return kind == groupKind
}

// EventOf reads an event of either API version: the older fields are empty in the newer one.
func EventOf(e corev1.Event) Event {
	at := e.LastTimestamp.Time
	if s := e.Series; s != nil && s.LastObservedTime.After(at) {
		at = s.LastObservedTime.Time
	}
	if at.IsZero() {
		at = e.EventTime.Time
	}
	if at.IsZero() {
		at = e.CreationTimestamp.Time
	}
	out := Event{Time: at.UTC(), Type: e.Type, Reason: e.Reason, Object: objectOf(e.InvolvedObject.Kind, e.InvolvedObject.Name), Message: e.Message, Count: e.Count}
	if e.Series != nil {
		out.Count = e.Series.Count
	}
	return out
}
