// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Effect is something to do once the status is persisted. Each may be done again.
//
//sumtype:decl
type Effect interface {
	fmt.Stringer
	effect()
}

// The effects.
type (
	// AskMove asks for a planned failover, unless one is already requested.
	AskMove struct{ To, ID string }
	// TakeBack withdraws a planned failover that was requested by a campaign which has ended.
	TakeBack struct{ ID string }
	// Answer answers the request that asked for the campaign.
	Answer struct {
		Outcome         v1alpha1.RequestOutcome
		Reason, Message string
	}
	// Say reports that something happened.
	Say struct {
		What Event
		Text string
	}
)

func (AskMove) effect()  {}
func (TakeBack) effect() {}
func (Answer) effect()   {}
func (Say) effect()      {}

func (e AskMove) String() string  { return "ask for the role to move to " + e.To }
func (e TakeBack) String() string { return "take the planned failover back" }
func (e Answer) String() string {
	return fmt.Sprintf("answer the campaign: %s %s %s", e.Outcome, e.Reason, e.Message)
}
func (e Say) String() string { return fmt.Sprintf("say %s: %s", e.What, e.Text) }

// Event names what an event is about.
type Event string

// The events of a campaign.
const (
	EventBegan   Event = "Began"
	EventDone    Event = "Done"
	EventStopped Event = "Stopped"
	EventRefused Event = "Refused"
)
