// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// ParamExplain asks GET /status for an Explanation. It takes exactly one group: an explanation is far larger than a
// status, and a thousand of them would be an answer that nobody wants.
const ParamExplain = "explain"

// ExplainedList is the answer to GET /status?namespace=…&group=…&explain=true: a StatusList whose group says why.
type ExplainedList struct {
	Operator string           `json:"operator"`
	IssuedAt time.Time        `json:"issuedAt"`
	Groups   []ExplainedGroup `json:"groups"`
}

// ExplainedGroup is a GroupStatus with its Explanation; nil until the operator has decided once.
type ExplainedGroup struct {
	GroupStatus
	Explanation *Explanation `json:"explanation,omitempty"`
}

// RuleVerdict is what one rule says to an emergency failover.
type RuleVerdict string

// The verdicts of a rule.
const (
	// RuleFor: the rule lets a failover go on, or calls for one.
	RuleFor RuleVerdict = "For"
	// RuleAgainst: the rule keeps a failover from happening.
	RuleAgainst RuleVerdict = "Against"
	// RuleOpen: what the rule needs is not known, or not asked now.
	RuleOpen RuleVerdict = "Open"
)

// Explanation says why the operator does, or does not, fail over at its last look at a group. It is computed by the
// functions that decide, from the facts that they saw.
type Explanation struct {
	At time.Time `json:"at"`
	// Topology, Verdict, Reason and Message are the decision.
	Topology string `json:"topology"`
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
	// Now is true if the role moves now; otherwise DecidedBy names the rule that keeps it where it is.
	Now       bool   `json:"now"`
	DecidedBy string `json:"decidedBy,omitempty"`
	// Rules are in the order in which they are asked. Those after DecidedBy say what would come next.
	Rules []ExplainedRule `json:"rules"`
	// Candidates are all sites but the active one, the best first.
	Candidates []ExplainedCandidate `json:"candidates"`
	// Loss is what an emergency failover to the best candidate would lose now; nil without a fit candidate.
	Loss *ExplainedLoss `json:"loss,omitempty"`
	// Blockers are the reasons that would keep an emergency failover from happening by itself if the active site were
	// lost now; empty if nothing would.
	Blockers []string `json:"blockers,omitempty"`
}

// ExplainedRule is one rule with what it was asked and what it says.
type ExplainedRule struct {
	Name    string      `json:"name"`
	Input   string      `json:"input"`
	Verdict RuleVerdict `json:"verdict"`
	// Reason is the word under which conditions and events name it, if it keeps a failover from happening.
	Reason string `json:"reason,omitempty"`
	// Remedies are what a person can do about it, and Remedy the same as words in one line.
	Remedies []Remedy `json:"remedies,omitempty"`
	Remedy   string   `json:"remedy,omitempty"`
	// Until is when it stops speaking against a failover although nobody does anything; zero if it takes more than time, or that is not known.
	Until time.Time `json:"until,omitzero"`
}

// ExplainedCandidate is one site and why it ranks where it does.
type ExplainedCandidate struct {
	Site string `json:"site"`
	Fit  bool   `json:"fit"`
	// Unfit is the first guard that refuses the site, in words.
	Unfit string `json:"unfit,omitempty"`
	// RankedBy is the rule that puts it behind the site before it; for the first, the one that puts it before the next.
	RankedBy string `json:"rankedBy"`
	// Because says RankedBy in words.
	Because string `json:"because"`
	// Transactions are those it has, applied or not; ToApply those in its relay log.
	Transactions int64 `json:"transactions"`
	ToApply      int64 `json:"toApply"`
	Priority     int32 `json:"priority"`
	// LostTransactions would be lost at least if it took over now; nil if that cannot be known.
	LostTransactions *int64   `json:"lostTransactions,omitempty"`
	LagSeconds       *float64 `json:"lagSeconds,omitempty"`
	// PlannedBlockedBy and PlannedMessage say why a planned failover to it would be refused now; empty if it would begin.
	PlannedBlockedBy string `json:"plannedBlockedBy,omitempty"`
	PlannedMessage   string `json:"plannedMessage,omitempty"`
	// PlannedRemedies are what a person can do about that.
	PlannedRemedies []Remedy `json:"plannedRemedies,omitempty"`
}

// ExplainedLoss is what an emergency failover would lose.
type ExplainedLoss struct {
	Site string `json:"site"`
	// Transactions is a lower bound; nil if it cannot be known.
	Transactions *int64 `json:"transactions,omitempty"`
	// Set is the GTID set of them.
	Set     string   `json:"set,omitempty"`
	Seconds *float64 `json:"seconds,omitempty"`
	Message string   `json:"message"`
}
