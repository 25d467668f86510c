// SPDX-License-Identifier: Apache-2.0

package wire

// Verdicts of the operator that programs act on, as GroupStatus and Explanation tell them.
const (
	// VerdictNothing: there is nothing to do.
	VerdictNothing = "Nothing"
	// VerdictBlocked: something is due, and a rule keeps it from happening.
	VerdictBlocked = "Blocked"
	// VerdictAlert: only a person can help.
	VerdictAlert = "Alert"
)

// TopologyTransition is the topology while the role of the active site moves.
const TopologyTransition = "Transition"

// RuleActiveSiteKnown is the rule that the operator knows which site is active.
const RuleActiveSiteKnown = "ActiveSiteKnown"

// What the operator says of the fence of a site.
const (
	// FenceOpen: the site takes writes.
	FenceOpen = "open"
	// FenceUnknown: nobody can say.
	FenceUnknown = "unknown"
)
