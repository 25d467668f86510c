// SPDX-License-Identifier: Apache-2.0

// Package monitor runs the poll loop of every group: gather, decide, persist, perform, report. What is decided stands in
// operator/failover; this package carries it out and decides nothing. It also answers the sidecars, because it owns the
// statement that stands.
//
//   - loop.go: pass runs the five beats once, in their order; carryOut persists before it performs.
//   - gather.go asks every site once, in parallel, each with its own deadline; site_client.go speaks to one, and package evidence
//     reads what Kubernetes proves of its pods.
//   - persist.go writes the durable part with optimistic locking before any effect.
//   - perform.go and handover.go carry out the effects in order and stop at the first failure.
//   - report.go writes status, labels, metrics and one log line when the decision changes; package groupstatus says what status
//     holds, package groupevents emits what is news; answers.go answers requests.
//   - authority.go answers the sidecars; the statement that stands is kept in operator/authority, signer.go holds the key.
package monitor
