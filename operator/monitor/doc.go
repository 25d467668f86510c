// SPDX-License-Identifier: Apache-2.0

// Package monitor runs the poll loop of every group: gather, decide, persist, perform, report. What is decided stands in
// operator/failover; this package carries it out and decides nothing. It also answers the sidecars, because it owns the
// statement that stands.
//
//   - gather.go asks every site once, in parallel, each with its own deadline.
//   - persist.go writes the durable part with optimistic locking before any effect.
//   - perform.go carries out the effects in order and stops at the first failure.
//   - authority.go answers the sidecars; the statement that stands is kept in operator/authority.
//   - report.go writes conditions, events, metrics, labels and one log line when the decision changes.
package monitor
