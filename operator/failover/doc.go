// SPDX-License-Identifier: Apache-2.0

// Package failover decides who may write. Decide is a function of what was seen, what is durably intended and what is
// remembered; it does no I/O and knows no clock. Read decide.go for the decision, transition.go, moving.go and opening.go for a change of the
// role that is under way, gate.go and operator/gate for when a site may be opened in place of another. Whether a site may be promoted is
// asked of operator/promotion, what its data is to the group's of operator/lineage, what was seen before of operator/memory; what sites are
// is told by operator/views, and why a decision was taken by operator/explain. The rules are in docs/failover.md, what can never happen is
// in docs/internals/invariants.md.
package failover
