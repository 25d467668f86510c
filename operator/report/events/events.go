// SPDX-License-Identifier: Apache-2.0

// Package events emits what has happened as Kubernetes events, and holds the table of those that there are. The features declare them.
package events

import (
	"fmt"
	"slices"

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

// Normal declares an event of what goes as it should. Each feature declares its own, as a variable of its package, and so puts it into
// the table.
func Normal(reason v1alpha1.Reason, action string) Event {
	return add(Event{Reason: reason, Type: corev1.EventTypeNormal, Action: action})
}

// Warning declares an event that somebody should read.
func Warning(reason v1alpha1.Reason, action string) Event {
	return add(Event{Reason: reason, Type: corev1.EventTypeWarning, Action: action})
}

// table holds what was declared. Packages are initialised one after the other, so it needs no lock.
var table []Event

func add(e Event) Event {
	table = append(table, e)
	return e
}

// Table returns every event that the packages of this program declare.
func Table() []Event { return slices.Clone(table) }

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
