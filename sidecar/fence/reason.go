// SPDX-License-Identifier: Apache-2.0

package fence

// Reason says why something is done or not done; logs and reports carry it.
type Reason string

// Reasons of decisions.
const (
	ClosedButNamed Reason = "ClosedButNamed"
	InWindow       Reason = "InWindow"
	ReadersKeptOut Reason = "ReadersKeptOut"
	AboutToOpen    Reason = "AboutToOpen"
	KeptOutLate    Reason = "KeptOutLate"
	PreparedXA     Reason = "PreparedXA"

	Leaving       Reason = "Leaving"
	Starting      Reason = "Starting"
	OpeningUnsure Reason = "OpeningUnsure"
	NoStatement   Reason = "NoStatement"
	WindowOver    Reason = "WindowOver"
	NamesAnother  Reason = "NamesAnother"
	NotOpenedHere Reason = "NotOpenedHere"
	MissedEpoch   Reason = "MissedEpoch"
	LeaseOver     Reason = "LeaseOver"
)

// Reasons of refusals.
const (
	OtherGroup         Reason = "OtherGroup"
	OtherNonce         Reason = "OtherNonce"
	LowerEpoch         Reason = "LowerEpoch"
	SameEpochOtherSite Reason = "SameEpochOtherSite"
	RelayedNotNewer    Reason = "RelayedNotNewer"

	NotFromOperator Reason = "NotFromOperator"
	NotTheNewest    Reason = "NotTheNewest"
	Held            Reason = "Held"
	NotDurable      Reason = "NotDurable"
	TooOld          Reason = "TooOld"
	LeaseTooShort   Reason = "LeaseTooShort"
	MySQLSilent     Reason = "MySQLSilent"
	MySQLWritable   Reason = "MySQLWritable"
	MySQLReplicates Reason = "MySQLReplicates"
	MySQLCloning    Reason = "MySQLCloning"
	WindowIsOpen    Reason = "WindowIsOpen"
	NotWatched      Reason = "NotWatched"
	FenceDue        Reason = "FenceDue"

	StillOpen  Reason = "StillOpen"
	StillNamed Reason = "StillNamed"

	AskerIsSelf   Reason = "AskerIsSelf"
	AskerIsNoPeer Reason = "AskerIsNoPeer"
	NotVerified   Reason = "NotVerified"
	NotHeard      Reason = "NotHeard"

	// OpeningNotMarked: if this run ended during the opening, the next one would not know of it (I1).
	OpeningNotMarked Reason = "OpeningNotMarked"
	// MysqldRestarted: the mysqld that the opening was marked for has ended, and another one runs.
	MysqldRestarted Reason = "MysqldRestarted"
	// KeyringNotEscrowed: the keyring of the site would be lost with its pod (I16).
	KeyringNotEscrowed Reason = "KeyringNotEscrowed"
)

// Refusal says why something is not done. An empty Reason means that it may be done.
type Refusal struct {
	Reason  Reason
	Message string
}

// guard is one reason against something, named by what blocks.
type guard[In any] struct {
	reason  Reason
	message string
	blocks  func(State, In) bool
}

// firstRefusal returns the first guard that blocks.
func firstRefusal[In any](guards []guard[In], s State, in In) Refusal {
	for _, g := range guards {
		if g.blocks(s, in) {
			return Refusal{Reason: g.reason, Message: g.message}
		}
	}
	return Refusal{}
}
