// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons about the steps in which TLS comes to a group.
const (
	// ReasonTLSWaitingForCertificate: the next step waits for a usable certificate in the Secret of spec.tls.
	ReasonTLSWaitingForCertificate Reason = "TLSWaitingForCertificate"
	// ReasonTLSUpdatingSites: the sites get the certificate, one after the other.
	ReasonTLSUpdatingSites Reason = "TLSUpdatingSites"
	// ReasonTLSVerifying: replicas verify their source from now on, one after the other.
	ReasonTLSVerifying Reason = "TLSVerifying"
	// ReasonTLSPlainConnectionsAllowed: clients may connect without TLS, as the specification says.
	ReasonTLSPlainConnectionsAllowed Reason = "TLSPlainConnectionsAllowed"
	// ReasonTLSPlainConnectionsSeen: clients without TLS are refused once none was seen for 10 minutes, and that is not so yet.
	ReasonTLSPlainConnectionsSeen Reason = "TLSPlainConnectionsSeen"
	// ReasonTLSStep: TLS of the group is one step on; the message says which one, and what the next waits for.
	ReasonTLSStep Reason = "TLSStep"
)
