// SPDX-License-Identifier: Apache-2.0

// Package request is the only place that answers what people ask for by an annotation of a group. An answer is a value in
// status.lastRequests, persisted before the request is removed from the group: if an operator ends in between, the next one
// finds both, removes the request and does nothing for it again. docs/decisions/0022 says why.
//
// It decides nothing: the monitor and the controller decide whether and how a request is answered.
package request
