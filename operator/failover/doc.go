// SPDX-License-Identifier: Apache-2.0

// Package failover decides who may write. Decide is a function of what was seen, what is durably intended and what is
// remembered; it does no I/O and knows no clock. Read decide.go for the decision, guards.go for what keeps a site from being promoted,
// rules.go, preflight.go and transition.go for the rules before and during a change of the role, lineage.go for what a site's data is to
// the group's, and operator/gate for when a site may be opened in place of another. The rules are in docs/failover.md, what can never
// happen is in docs/invariants.md.
package failover
