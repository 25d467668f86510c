// SPDX-License-Identifier: Apache-2.0

// Package passwords decides how the passwords of the operator's own MySQL accounts are replaced while everything runs. It is pure.
//
// What is under way stands in the accounts Secret itself, so that nothing is lost with a process. An account has up to four keys
// there: NAME is what everybody logs in with; NAME-known is the operator's own copy of it, by which it notices that somebody
// edited NAME; NAME-next is being made known to the servers; NAME-previous is still taken by them. A server takes two passwords of
// an account at a time, and one that is in the Secret is valid on every site at every moment (I21). One more key, order, names the order
// for which the passwords that come were made.
package passwords

import (
	"maps"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// maxLength is how many characters MySQL's receiver takes.
const maxLength = 32

// Accounts are those that have a password in the Secret.
var Accounts = []string{v1alpha1.AccountOperator, v1alpha1.AccountReplication, v1alpha1.AccountSidecar, v1alpha1.AccountClone}

// Entry is what the Secret holds of one account; empty is what is not there.
type Entry struct {
	Current, Known, Next, Previous string
}

// String never shows a password.
func (Entry) String() string { return "[redacted]" }

// GoString never shows a password.
func (e Entry) GoString() string { return e.String() }

// Taken is what a server said of the passwords of an account.
type Taken struct{ Current, Next, Previous bool }

// Site is one site.
type Site struct {
	Name string
	// Active is true for the active site, Provisioned for one whose data is part of the group.
	Active, Provisioned bool
	// Busy is true while the site is cloned, or its keys are rotated.
	Busy bool
	// Looked is true if every account was tried there under the Secret as it is, and a moment ago. Trouble says why not, if it was tried.
	Looked  bool
	Trouble string
	Taken   map[string]Taken
	// Serial is that of the Secret with which the site's sidecar has logged in; 0 if it did not say.
	Serial int64
	// Receives is the serial of the Secret whose password its receiver was given.
	Receives int64
}

// State is all that the decision rests on.
type State struct {
	Entries map[string]Entry
	// Serial counts the changes of passwords in the Secret.
	Serial int64
	// Order is the value of the annotation, if it is set; OrderID tells it from every other order.
	Order, OrderID string
	HasOrder       bool
	// MadeFor is the ID of the order for which the passwords that come were made; empty if a person wrote them, or an earlier version
	// of the operator made them.
	MadeFor string
	// Fresh is true for a group that was never open: its servers are made with what the Secret has.
	Fresh bool
	// Open is true while the active site is open and its role does not move.
	Open bool
	// Settled is true once nobody can hold an older Secret in memory that holds it for some seconds only.
	Settled bool
	Sites   []Site
}

// Wait is what a rotation waits for.
type Wait struct {
	Reason  v1alpha1.Reason
	Message string
}

// Effect is what is to be done; nil is nothing.
type Effect interface{ effect() }

type (
	// Write puts passwords into the Secret. Notes say why, for people.
	Write struct {
		Entries map[string]Entry
		Serial  int64
		Notes   []Note
	}
	// Generate writes a new password beside that of each of these accounts, and for which order.
	Generate struct {
		Accounts []string
		OrderID  string
	}
	// Look tries every password of these accounts at every site.
	Look struct{ Accounts []string }
	// Introduce has the active site take a second password of these accounts: that of From is kept.
	Introduce struct {
		Site string
		// Secrets are the two passwords of each account.
		Secrets map[string]Pair
	}
	// Retire has the active site take the current password of these accounts alone.
	Retire struct {
		Site     string
		Accounts []string
	}
	// Finish takes the former passwords of these accounts out of the Secret, and the note of their order. Answered is true if the order
	// that stands is over with it.
	Finish struct {
		Accounts []string
		Entries  map[string]Entry
		Answered bool
	}
	// Refuse takes the order off the group.
	Refuse struct{ Why string }
)

// Pair are the password that stays and the one that comes.
type Pair struct{ Stays, Comes string }

// String never shows a password.
func (Pair) String() string { return "[redacted]" }

// GoString never shows a password.
func (p Pair) GoString() string { return p.String() }

func (Write) effect()     {}
func (Generate) effect()  {}
func (Look) effect()      {}
func (Introduce) effect() {}
func (Retire) effect()    {}
func (Finish) effect()    {}
func (Refuse) effect()    {}

// Event is what happened to a password.
type Event string

// The events.
const (
	// EventEdited: somebody wrote another password, and the servers are given it.
	EventEdited Event = "Edited"
	// EventUndone: somebody wrote another password while one was being replaced, or took one out; it is as before.
	EventUndone Event = "Undone"
	// EventUnusable: somebody wrote a password that no server takes; it is as before.
	EventUnusable Event = "Unusable"
)

// Note is an event of one account.
type Note struct {
	Event   Event
	Account string
	Text    string
}

// Decision is the next step, and how far it is.
type Decision struct {
	Effect Effect
	Wait   Wait
	// Phase is empty while nothing is replaced.
	Phase    v1alpha1.PasswordPhase
	Accounts []string
}

// All is the order for every account.
const All = "all"

// ParseOrder reads the value of the annotation: all, or accounts separated by commas. Its second result says what is wrong.
func ParseOrder(value string) (accounts []string, why string) {
	if value = strings.TrimSpace(value); value == All {
		return slices.Clone(Accounts), ""
	}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(Accounts, name) {
			return nil, "there is no account " + quoted(name) + ": name " + All + ", or some of " + strings.Join(Accounts, ", ") + ", separated by commas"
		}
		if !slices.Contains(accounts, name) {
			accounts = append(accounts, name)
		}
	}
	return accounts, ""
}

// quoted cuts what a person wrote, so that it fits into a message.
func quoted(name string) string {
	if len(name) > 40 {
		name = name[:40] + "..."
	}
	return `"` + name + `"`
}

func with(entries map[string]Entry, has func(Entry) bool) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if has(entries[name]) {
			out = append(out, name)
		}
	}
	return out
}
