// SPDX-License-Identifier: Apache-2.0

// Package request is the only place that answers what people ask for by an annotation of a group. An answer is a value in
// status.lastRequests, persisted before the request is taken off the group: an operator that ends in between finds both, takes
// the request off and does nothing for it again. docs/decisions/0022 tells why.
//
// It decides nothing: whether and how a request is answered is up to the monitor and the controller.
package request
