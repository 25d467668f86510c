// SPDX-License-Identifier: Apache-2.0

// Package failover decides who may write. Decide is a function of what was seen, what is durably intended and what is
// remembered; it does no I/O and knows no clock. Read decide.go for the decision, gate.go for when a site may be opened
// in place of another, candidate.go for who may take over, views.go for what each site is. The rules are in
// docs/failover.md, what can never happen is in docs/invariants.md.
package failover
