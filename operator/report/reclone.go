// SPDX-License-Identifier: Apache-2.0

package report

// The events of a reclone.
var (
	RecloneAccepted = normal("RecloneAccepted", "Clone", "A site is about to be cloned anew, as a person or spec.failover.onDivergence orders.")
	RecloneRefused  = warning("RecloneRefused", "Refuse", "A reclone was asked for and refused; nothing was changed.")
	RecloneDone     = normal("RecloneDone", "Clone", "A site was cloned anew as ordered, and its data is part of the group.")
)
