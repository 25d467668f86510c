// SPDX-License-Identifier: Apache-2.0

// Package failover decides who may write. Decide is a function of what the poll saw, what is durably intended and what is remembered; it does
// no I/O and has no clock. Read decide.go for the decision; transition.go, moving.go and opening.go for a change of the role under way;
// gate.go and operator/gate for when a site may be opened in place of another. operator/promotion says whether a site may be promoted,
// operator/lineage how its data relates to the group's, operator/memory what earlier polls saw, operator/views what each site is, and
// operator/explain why a decision was taken. docs/failover.md has the rules, and docs/internals/invariants.md says what can never happen.
package failover
