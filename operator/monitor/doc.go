// SPDX-License-Identifier: Apache-2.0

// Package monitor runs the poll loop of every group: gather, decide, persist, perform, report. Package operator/failover
// decides; this package carries that out and decides nothing. It also answers the sidecars, because it owns the valid
// statement.
//
//   - loop.go: pass runs the five beats once, in their order; carryOut persists before it performs.
//   - gather.go asks every site once, in parallel, each with its own deadline; site_client.go speaks to one, and package evidence
//     reads what Kubernetes proves of its pods.
//   - persist.go writes the durable part with optimistic locking before any effect.
//   - perform.go and handover.go carry out the effects in order and stop at the first failure.
//   - report.go writes status, labels, metrics and one log line when the decision changes; package groupstatus builds the
//     status, package groupevents emits the news; answers.go answers requests.
//   - authority.go answers the sidecars; operator/authority keeps the valid statement, signer.go holds the key.
package monitor
