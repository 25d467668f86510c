// SPDX-License-Identifier: Apache-2.0

package server

import "github.com/mysql-mfg/mfg/operator/report/metrics"

// Outcomes of escrowPushes. With stored the keyring is in escrow, even if it was before; the others say why not.
const (
	escrowStored          = "stored"
	escrowUnauthorized    = "unauthorized"
	escrowNotUnsealed     = "not_unsealed"
	escrowOtherPod        = "other_pod"
	escrowDigestMismatch  = "digest_mismatch"
	escrowNotAKeyring     = "not_a_keyring"
	escrowTooLarge        = "too_large"
	escrowTooSlow         = "too_slow"
	escrowBadRequest      = "bad_request"
	escrowTooManyVersions = "too_many_versions"
	escrowTooManyClients  = "too_many_clients"
	escrowNotLeading      = "not_leading"
	escrowFailed          = "failed"
)

// escrowOutcomes are all outcomes of escrowPushes.
func escrowOutcomes() []string {
	return []string{
		escrowStored, escrowUnauthorized, escrowNotUnsealed, escrowOtherPod, escrowDigestMismatch, escrowNotAKeyring,
		escrowTooLarge, escrowTooSlow, escrowBadRequest, escrowTooManyVersions, escrowTooManyClients, escrowNotLeading, escrowFailed,
	}
}

// escrowPushes counts keyrings that sidecars handed over, by outcome.
var escrowPushes = metrics.Counter(metrics.Group, "operator_keyring_escrow_pushes_total",
	"Keyrings that sidecars handed to the operator for escrow, by outcome. Both names are empty if the token was not found good: anyone who reaches the port can push, with any names.", "outcome")

// pusher is the group whose token a push had; empty until that token is found good. Otherwise a stranger could make series without end.
type pusher struct{ namespace, group string }

// count counts a push. Every outcome of the group is known before that: a rate over a series that does not exist yet misses its first
// increase.
func (p pusher) count(outcome string) {
	p.start()
	escrowPushes.WithLabelValues(p.namespace, p.group, outcome).Inc()
}

// start sets every outcome to 0.
func (p pusher) start() {
	for _, outcome := range escrowOutcomes() {
		escrowPushes.WithLabelValues(p.namespace, p.group, outcome)
	}
}

// Refused counts connections and requests that the operator's listeners refused or did not answer, by listener and reason.
var Refused = metrics.Counter(metrics.Operator, "operator_refused_requests_total",
	"Connections and requests that a listener of the operator (auxiliary, escrow, metrics, probes) refused, by reason.", "listener", "reason")

// Listeners of Refused.
const (
	ListenerAuxiliary = "auxiliary"
	ListenerEscrow    = "escrow"
	ListenerMetrics   = "metrics"
	ListenerProbes    = "probes"
)
