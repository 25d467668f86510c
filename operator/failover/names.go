// SPDX-License-Identifier: Apache-2.0

package failover

import "github.com/mysql-mfg/mfg/operator/facts"

// The types of facts live in operator/facts; here they have their short names.
type (
	Policy     = facts.Policy
	Snapshot   = facts.Snapshot
	Durable    = facts.Durable
	Transition = facts.Transition
	Planned    = facts.Planned
	Site       = facts.Site
	Sidecar    = facts.Sidecar
	MySQL      = facts.MySQL
	Pod        = facts.Pod
	Memory     = facts.Memory
	SiteMemory = facts.SiteMemory
	Ack        = facts.Ack
	SQLFence   = facts.SQLFence
	Run        = facts.Run
	SeenRun    = facts.SeenRun
	Node       = facts.Node
	Group      = facts.Group
	Reason     = facts.Reason
	Remedy     = facts.Remedy
	runs       = facts.Runs
)

const (
	// LeaseMargin is added to the lease before it counts as run out.
	LeaseMargin = facts.LeaseMargin
	// AskTimeout is how long one poll waits for a site that does not answer, at most.
	AskTimeout = facts.AskTimeout
	// BystanderTimeout and LostTimeout are how long it waits for some while a failover is under way.
	BystanderTimeout = facts.BystanderTimeout
	LostTimeout      = facts.LostTimeout
	// ReasonDiskStalled and ReasonDiskFailed are said of an open active site whose volume takes no writes.
	ReasonDiskStalled = facts.ReasonDiskStalled
	ReasonDiskFailed  = facts.ReasonDiskFailed
	// WorkClone and WorkRotation are long work on a site, as Busy names it.
	WorkClone    = facts.WorkClone
	WorkRotation = facts.WorkRotation
)
