// SPDX-License-Identifier: Apache-2.0

// Package promotion says whether a site may get the role, and what is against it: guards.go for each site, candidate.go for their rank,
// rules.go for an emergency failover, preflight.go for a planned one, order.go for what a person may order. Each is a table of rows. A
// decision (operator/failover) stops at the first row that refuses, an explanation (operator/explain) asks them all. Nothing here begins,
// continues or ends a change of the role.
package promotion
