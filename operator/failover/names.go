// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"time"

	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/views"
)

// The types of facts live in operator/facts, those that describe sites in operator/views and operator/promotion; these are their short names.
type (
	// Policy is facts.Policy.
	Policy = facts.Policy
	// Snapshot is facts.Snapshot.
	Snapshot = facts.Snapshot
	// Durable is facts.Durable.
	Durable = facts.Durable
	// Transition is facts.Transition.
	Transition = facts.Transition
	// Planned is facts.Planned.
	Planned = facts.Planned
	// Site is facts.Site.
	Site = facts.Site
	// Sidecar is facts.Sidecar.
	Sidecar = facts.Sidecar
	// MySQL is facts.MySQL.
	MySQL = facts.MySQL
	// Pod is facts.Pod.
	Pod = facts.Pod
	// Memory is facts.Memory.
	Memory = facts.Memory
	// SiteMemory is facts.SiteMemory.
	SiteMemory = facts.SiteMemory
	// Ack is facts.Ack.
	Ack = facts.Ack
	// SQLFence is facts.SQLFence.
	SQLFence = facts.SQLFence
	// Run is facts.Run.
	Run = facts.Run
	// SeenRun is facts.SeenRun.
	SeenRun = facts.SeenRun
	// Node is facts.Node.
	Node = facts.Node
	// Group is facts.Group.
	Group = facts.Group
	// Reason is facts.Reason.
	Reason = facts.Reason
	// Remedy is facts.Remedy.
	Remedy = facts.Remedy
	// View is views.View.
	View = views.View
	// Unwritable is views.Unwritable.
	Unwritable = views.Unwritable
	// Forecast is promotion.Forecast.
	Forecast = promotion.Forecast
)

const (
	// AskTimeout is how long one poll waits for a site that does not answer, at most.
	AskTimeout = facts.AskTimeout
	// BystanderTimeout is how long a poll waits for a site that has no part in a planned failover.
	BystanderTimeout = facts.BystanderTimeout
	// LostTimeout is how long a poll waits for the site that an emergency failover takes the role from.
	LostTimeout = facts.LostTimeout
	// ReasonDiskStalled is the reason of an open active site whose volume takes no writes.
	ReasonDiskStalled = facts.ReasonDiskStalled
	// ReasonDiskFailed is the reason of one whose volume answers with errors.
	ReasonDiskFailed = facts.ReasonDiskFailed
	// WorkClone is long work on a site, as Busy names it.
	WorkClone = facts.WorkClone
	// WorkRotation is another.
	WorkRotation = facts.WorkRotation
	// LeavingForUpdate is what Site.Leaving says when an ordered update wants the role elsewhere.
	LeavingForUpdate = facts.LeavingForUpdate
)

// LeaseEnd is facts.LeaseEnd.
func LeaseEnd(lease time.Duration) time.Duration { return facts.LeaseEnd(lease) }
