// SPDX-License-Identifier: Apache-2.0

package report

// Reasons of DNSReady and TaintsReady.
const (
	ReasonExternalDNSMissing = "ExternalDNSMissing"
	ReasonAddressMissing     = "AddressMissing"
	// ReasonNameNotAllowed: spec.dns.name lies in no domain in which the installation publishes names.
	ReasonNameNotAllowed = "NameNotAllowed"
	ReasonForbidden      = "Forbidden"
	ReasonWriteFailed    = "WriteFailed"
)

// The events of what follows the active site outside the group.
var (
	DNSSwitched  = normal("DNSSwitched", "Switch", "The DNS name was pointed to the active site.")
	DNSFailed    = warning("DNSFailed", "Retry", "The DNS name does not follow the active site, or will not after the next failover.")
	TaintsFailed = warning("TaintsFailed", "Retry", "The taints on the nodes do not follow the active site.")
)
