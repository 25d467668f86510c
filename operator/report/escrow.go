// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/prometheus/client_golang/prometheus"

// Outcomes of EscrowPushes. With stored the keyring is in escrow, be it that it was before; the others say why not.
const (
	EscrowStored          = "stored"
	EscrowUnauthorized    = "unauthorized"
	EscrowNotUnsealed     = "not_unsealed"
	EscrowOtherPod        = "other_pod"
	EscrowDigestMismatch  = "digest_mismatch"
	EscrowNotAKeyring     = "not_a_keyring"
	EscrowTooLarge        = "too_large"
	EscrowTooSlow         = "too_slow"
	EscrowBadRequest      = "bad_request"
	EscrowTooManyVersions = "too_many_versions"
	EscrowTooManyClients  = "too_many_clients"
	EscrowNotLeading      = "not_leading"
	EscrowFailed          = "failed"
)

// EscrowOutcomes are all outcomes of EscrowPushes.
func EscrowOutcomes() []string {
	return []string{
		EscrowStored, EscrowUnauthorized, EscrowNotUnsealed, EscrowOtherPod, EscrowDigestMismatch, EscrowNotAKeyring,
		EscrowTooLarge, EscrowTooSlow, EscrowBadRequest, EscrowTooManyVersions, EscrowTooManyClients, EscrowNotLeading, EscrowFailed,
	}
}

// EscrowPushes counts keyrings that sidecars handed over, by outcome.
var EscrowPushes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "operator_keyring_escrow_pushes_total",
	Help: "Keyrings that sidecars handed to the operator for escrow, by outcome.",
}, []string{"outcome"})

// StartEscrow makes every outcome of EscrowPushes known with 0: a rate over a series that is not there yet misses its
// first increase.
func StartEscrow() {
	for _, outcome := range EscrowOutcomes() {
		EscrowPushes.WithLabelValues(outcome)
	}
}
