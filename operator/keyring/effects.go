// SPDX-License-Identifier: Apache-2.0

package keyring

import "fmt"

// Effect is something to do once the status is persisted. Each may be done again.
//
//sumtype:decl
type Effect interface {
	fmt.Stringer
	effect()
}

// The effects.
type (
	// MakeToken gives a site a new token for a round.
	MakeToken struct {
		Site  string
		Round int64
	}
	// DropToken removes the token of a sealed site.
	DropToken struct{ Site string }
	// Rotate rotates both master keys of a replica.
	Rotate struct{ Site string }
	// Prune removes superseded escrow Secrets.
	Prune struct {
		Site  string
		Names []string
	}
	// Unprovision removes the mark that a site holds the group's data: nothing can read that data any more.
	Unprovision struct{ Site, Why string }
	// Answer answers the request rotate-keyring. Reason says why it was refused.
	Answer struct {
		Site   string
		Done   bool
		Reason string
		Why    string
	}
	// Say reports that something happened.
	Say struct {
		Site string
		What Event
		Text string
	}
)

func (MakeToken) effect()   {}
func (DropToken) effect()   {}
func (Rotate) effect()      {}
func (Prune) effect()       {}
func (Unprovision) effect() {}
func (Answer) effect()      {}
func (Say) effect()         {}

func (e MakeToken) String() string {
	return fmt.Sprintf("make token of %s for round %d", e.Site, e.Round)
}
func (e DropToken) String() string   { return "drop token of " + e.Site }
func (e Rotate) String() string      { return "rotate " + e.Site }
func (e Prune) String() string       { return fmt.Sprintf("prune %v of %s", e.Names, e.Site) }
func (e Unprovision) String() string { return fmt.Sprintf("unprovision %s: %s", e.Site, e.Why) }
func (e Answer) String() string {
	return fmt.Sprintf("answer rotation of %s: %v %s %s", e.Site, e.Done, e.Reason, e.Why)
}

func (e Say) String() string { return fmt.Sprintf("say %s of %s: %s", e.What, e.Site, e.Text) }

// Event names what an event is about.
type Event string

// The events of the phase machine.
const (
	EventUnsealed        Event = "Unsealed"
	EventEscrowed        Event = "Escrowed"
	EventSealed          Event = "Sealed"
	EventEscrowMissing   Event = "EscrowMissing"
	EventEscrowBack      Event = "EscrowBack"
	EventNotEscrowed     Event = "NotEscrowed"
	EventKeyringLost     Event = "KeyringLost"
	EventRotated         Event = "Rotated"
	EventRotationRefused Event = "RotationRefused"
	EventAdopted         Event = "Adopted"
	EventAdoptionRefused Event = "AdoptionRefused"
	EventFound           Event = "Found"
)
