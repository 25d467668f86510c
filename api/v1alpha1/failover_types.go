// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailoverMode says what the operator may do by itself.
//
// +kubebuilder:validation:Enum=Auto;Manual;Observe
type FailoverMode string

// The failover modes.
const (
	FailoverAuto    FailoverMode = "Auto"
	FailoverManual  FailoverMode = "Manual"
	FailoverObserve FailoverMode = "Observe"
)

// DivergencePolicy says what happens to a site with transactions that the active site lacks.
//
// +kubebuilder:validation:Enum=Hold;Reclone
type DivergencePolicy string

// The divergence policies.
const (
	DivergenceHold    DivergencePolicy = "Hold"
	DivergenceReclone DivergencePolicy = "Reclone"
)

// FailoverSpec governs failover. Durations are written like 500ms, 20s, 10m or 1h30m.
type FailoverSpec struct {
	// mode is Auto (the operator fails over on its own), Manual (it moves the role by plan, on request, for a drain
	// or for an update, and waits for a person in an emergency) or Observe (it moves the role only by an order that accepts loss, and
	// else reports what it would do). Default Auto.
	//
	// +optional
	// +kubebuilder:default=Auto
	Mode FailoverMode `json:"mode,omitempty"`
	// pollInterval is how often every site is polled. Default 2s, from 500ms to 30s.
	//
	// +optional
	// +kubebuilder:default="2s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('500ms') && duration(self) <= duration('30s')",message="pollInterval is between 500ms and 30s: choose a value in that range",reason=FieldValueInvalid
	PollInterval metav1.Duration `json:"pollInterval,omitempty,omitzero"`
	// threshold is how many silent polls in a row make the active site fail. Default 3, from 1 to 100.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Threshold int32 `json:"threshold,omitempty"`
	// crashGrace is how long a dead mysqld may take to restart in place, which loses nothing. Default 5s, up to 10m.
	//
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('10m')",message="crashGrace is at most 10m: choose a shorter one",reason=FieldValueInvalid
	CrashGrace metav1.Duration `json:"crashGrace,omitempty,omitzero"`
	// stallTimeout is for how long the data volume of the active site may take no write, because it does not answer or returns errors,
	// before another site takes over whose own volume does. A full volume is told, and moves no role. Default 60s, from 10s to 1h; 0s
	// means never.
	//
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="stallTimeout is between 10s and 1h, or 0s: choose a value in that range, or 0s for no failover over a stalled volume",reason=FieldValueInvalid
	StallTimeout *metav1.Duration `json:"stallTimeout,omitempty"`
	// cooldown is how long after an emergency failover that the operator began without an order no other one starts without an order.
	// Default 10m, up to 24h.
	//
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('24h')",message="cooldown is at most 24h: choose a shorter one, or mode Manual",reason=FieldValueInvalid
	Cooldown metav1.Duration `json:"cooldown,omitempty,omitzero"`
	// drainTimeout bounds how long a site that is to be promoted may take to apply its relay log. Default 30s, from 1s
	// to 1h.
	//
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="drainTimeout is between 1s and 1h: choose a value in that range",reason=FieldValueInvalid
	DrainTimeout metav1.Duration `json:"drainTimeout,omitempty,omitzero"`
	// plannedLagTimeout is how long a planned failover waits for its target to catch up before anything is changed.
	// Default 1m, from 1s to 24h.
	//
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="plannedLagTimeout is between 1s and 24h: choose a value in that range",reason=FieldValueInvalid
	PlannedLagTimeout metav1.Duration `json:"plannedLagTimeout,omitempty,omitzero"`
	// plannedPauseTimeout is how long a planned failover may keep writes out before it is reverted and the old active
	// site is opened again. Default 5s, from 1s to 5m.
	//
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('5m')",message="plannedPauseTimeout is between 1s and 5m: choose a value in that range",reason=FieldValueInvalid
	PlannedPauseTimeout metav1.Duration `json:"plannedPauseTimeout,omitempty,omitzero"`
	// maxLostTransactions is the loss budget: it blocks an emergency failover that is known to lose more transactions. What is
	// known is what the active site had at the last look that it answered, and what any reachable site has. What it accepted
	// after that look is not bounded: up to a poll before a crash, and up to the lease where it was cut off from the operator
	// and not from its clients. Default unset: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxLostTransactions *int64 `json:"maxLostTransactions,omitempty"`
	// onDivergence says what happens to a site with transactions that the active site lacks: Hold keeps it fenced for a
	// person, Reclone throws its data away and clones it again, once its loss is in status.failovers and its lost rows are
	// counted. While no other site is a healthy copy, Reclone waits for a person too. Default Hold.
	//
	// +optional
	// +kubebuilder:default=Hold
	OnDivergence DivergencePolicy `json:"onDivergence,omitempty"`
}

// SidecarSpec governs the fence. The rule asks has() although all three have defaults, because the API server checks the
// empty default of the whole struct before it fills it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.leaseTimeout) || !has(self.peerCheckInterval) || !has(self.fenceTimeout) || duration(self.leaseTimeout) >= duration(self.peerCheckInterval) + duration(self.peerCheckInterval) + duration(self.peerCheckInterval) + duration(self.fenceTimeout) + duration('1s')",message="leaseTimeout must be at least 3 x peerCheckInterval + fenceTimeout + 1s, or a single lost answer could fence a healthy site: raise leaseTimeout or lower the others",fieldPath=".leaseTimeout",reason=FieldValueInvalid
type SidecarSpec struct {
	// leaseTimeout is how long a site stays open without an answer from the operator or any peer; then it fences itself.
	// An emergency failover behind a network cut takes about this long. Default 20s, from 5s to 10m, and at least
	// 3 x peerCheckInterval + fenceTimeout + 1s, so that one lost answer fences nobody: 5s needs, for example,
	// peerCheckInterval 1s and fenceTimeout 1s. The shorter the lease, the more often a slow network fences a healthy site.
	//
	// +optional
	// +kubebuilder:default="20s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('10m')",message="leaseTimeout is between 5s and 10m: choose a value in that range",reason=FieldValueInvalid
	LeaseTimeout metav1.Duration `json:"leaseTimeout,omitempty,omitzero"`
	// peerCheckInterval is how often the sidecar asks the operator and its peers for the active site. Default 2s, from
	// 200ms to 1m.
	//
	// +optional
	// +kubebuilder:default="2s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('200ms') && duration(self) <= duration('1m')",message="peerCheckInterval is between 200ms and 1m: choose a value in that range",reason=FieldValueInvalid
	PeerCheckInterval metav1.Duration `json:"peerCheckInterval,omitempty,omitzero"`
	// fenceTimeout is the deadline of fencing by SQL, after which mysqld is killed. Default 2s, from 500ms to 1m.
	//
	// +optional
	// +kubebuilder:default="2s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('500ms') && duration(self) <= duration('1m')",message="fenceTimeout is between 500ms and 1m: choose a value in that range",reason=FieldValueInvalid
	FenceTimeout metav1.Duration `json:"fenceTimeout,omitempty,omitzero"`
	// resources of the sidecar container; its own, so that the load of mysqld cannot stop the fence. Default: requests of
	// 50m CPU and 64Mi memory, no limits.
	//
	// +optional
	// +kubebuilder:default={requests: {cpu: "50m", memory: "64Mi"}}
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`
}

// MaxReadLag is by how much a replica may lag that takes reads; zero means no limit.
func (g *MysqlFailoverGroup) MaxReadLag() time.Duration {
	if g.Spec.MaxReadLag == nil {
		return 0
	}
	return g.Spec.MaxReadLag.Duration
}

// StallTimeout is zero if no failover follows from a volume that takes no writes.
func (g *MysqlFailoverGroup) StallTimeout() time.Duration {
	if g.Spec.Failover.StallTimeout == nil {
		return time.Minute
	}
	return g.Spec.Failover.StallTimeout.Duration
}
