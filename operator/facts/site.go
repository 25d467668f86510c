// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// Site is what was seen of one site in one poll.
type Site struct {
	Name     string
	Role     v1alpha1.SiteRole
	Priority int32
	// Provisioned is true once the site's data is part of the group.
	Provisioned bool
	// Removed is true for a site that left the spec: it can never be promoted, but its pod may still run and vouch.
	Removed bool
	// Listed is true if the pod of another site was started with this one among its peers: that site asks this one, and may believe it.
	Listed bool
	// Unlisted is true if status says that no pod of another site was ever started with this one among its peers.
	Unlisted bool
	// OtherVolume is true if the site's data volume is not the one on which it was provisioned.
	OtherVolume bool
	// Impossible is true if its sidecar reported an epoch that the group cannot have reached; what it said is left out then.
	Impossible bool
	// Unnoted is true if its data volume has a name and status holds none for the site.
	Unnoted bool
	// Noted is true if its data volume is the very one that status names for it.
	Noted bool
	// EscrowMissing is true if its pod is made sealed and the escrow Secret of its keyring is gone: the memory of that pod has the
	// only copy, and any restart of the pod makes its data unreadable.
	EscrowMissing bool
	// KeptFenced is true while a person keeps the site fenced: it is not opened (I29).
	KeptFenced bool
	// Busy names long work on the site (WorkClone, WorkRotation); such a site is no candidate.
	Busy string
	// Leaving says why the site is about to go: its pod is being deleted, its node drained, an update waits. Empty normally.
	Leaving string
	// CacheBehind says why the cache of the site has not caught up. Empty if it has, or if there is none. What is not
	// known counts as caught up, unless cache.planned.onTimeout is Refuse.
	CacheBehind string
	Sidecar     Sidecar
	MySQL       MySQL
	Pod         Pod
	// Runs are the incarnations of the site that may still run; Decide fills them in.
	Runs []Run
}

// Sidecar is what the site's sidecar answered to this poll's push.
type Sidecar struct {
	Answered bool
	Report   wire.Report
	At       time.Time
	// Deaf is true if it answers but accepts no statement, because nothing leads it to the signing key. Answered is false then, as for
	// a silent one: it opens on no statement and acknowledges no epoch. Only what it says about its lease counts.
	Deaf bool
}

// MySQL is what the site's MySQL answered to the operator itself in this poll, or through its sidecar.
type MySQL struct {
	// Direct is true if the operator's own connection answered.
	Direct                      bool
	ServerUUID, Version         string
	ReadOnly, SuperReadOnly     bool
	OfflineMode                 bool
	Executed, Purged, Retrieved gtid.Set
	ReplicaOf                   string
	ReplicaHost                 string
	IORunning, SQLRunning       bool
	// ReceiverStopped is true if the receiver thread is off, not merely without a connection.
	ReceiverStopped   bool
	IOError, SQLError string
	IOErrno           int
	LagSeconds        *float64
	Cloning           bool
	// HalfCloned is true if the last clone into the server has begun and is not known to have succeeded, also while it runs.
	HalfCloned bool
	// Filtered is true if a replication filter is set: the applier skips transactions, and the sets do not show it.
	Filtered bool
	// Delayed is true if the applier waits on purpose before it applies (SOURCE_DELAY).
	Delayed bool
	// NoClone is true if the server has no clone plugin, so that Cloning and HalfCloned are not known.
	NoClone bool
}

// Pod is the Kubernetes evidence on a site.
type Pod struct {
	Exists bool
	Name   string
	UID    string
	Node   string
	// Deleted is true if the pod is being deleted: it ends within its grace period, whatever is done.
	Deleted bool
	// VolumeGoes is true if the claim of its data volume is being deleted: what the site has is gone as soon as its pod ends.
	VolumeGoes bool
	// Ended is true if the site's pod has ended for good (phase Failed or Succeeded: its containers never start again),
	// as the kubelet of a Ready node says, and that pod had held the volume's lock, so that none before it runs.
	Ended bool
	// Lease is the lease and the fence's deadline that the pod's sidecar was started with; zero when unknown.
	Lease time.Duration
	// OutOfService is true if a person tainted the pod's node, or the node its volume is bound to, as down.
	OutOfService bool
	// Runs are the pods of the site that have a node, the oldest first.
	Runs []SeenRun
	// Unplaced is true if no node is known that ever had a pod of the site.
	Unplaced bool
}

// Long work on a site, as Busy names it.
const (
	WorkClone    = "Clone"
	WorkRotation = "Rotation"
)

// Writes is true for a site that accepts writes, unless there is work on it behind offline_mode.
func (s Site) Writes() bool { return s.Writable() && s.Busy == "" }

// Beside returns a run that may still run, other than the one of that pod.
func (s Site) Beside(uid string) (Run, bool) { return gate.Runs(s.Runs).Beside(uid) }

// WritesBeside returns a run that may still accept commits, other than the one of that pod.
func (s Site) WritesBeside(uid string) (Run, bool) { return gate.Runs(s.Runs).WritesBeside(uid) }

// Only is true if what the pod says holds for the whole site.
func (s Site) Only(uid string) bool { return gate.Runs(s.Runs).Only(uid) }

// ShutBut is true if no run of the site but that pod's may accept commits.
func (s Site) ShutBut(uid string) bool { return gate.Runs(s.Runs).ShutBut(uid) }

// All is what the site has: applied or still in its relay log.
func (s Site) All() gtid.Set { return s.MySQL.Executed.Union(s.MySQL.Retrieved) }

// ThrownAway is true while a clone replaces what the site has. A rotation of master keys leaves it whole.
func (s Site) ThrownAway() bool { return s.Busy == WorkClone || s.MySQL.Cloning }

// SQLAnswers is true if MySQL answered SQL, to the operator or to its sidecar.
func (s Site) SQLAnswers() bool {
	return s.MySQL.Direct || (s.Sidecar.Answered && s.Sidecar.Report.Answered)
}

// Reachable is true if the sidecar or MySQL answered.
func (s Site) Reachable() bool { return s.Sidecar.Answered || s.MySQL.Direct }

// Writable is true if MySQL was seen to accept writes by either witness.
func (s Site) Writable() bool {
	byReport := s.Sidecar.Answered && s.Sidecar.Report.Answered && s.Sidecar.Report.Writable
	bySQL := s.MySQL.Direct && !s.MySQL.SuperReadOnly && !s.MySQL.ReadOnly
	return byReport || bySQL
}

// Unusable is true if MySQL does not answer, or is read-only without a sidecar that could open it.
func (s Site) Unusable() bool { return !s.SQLAnswers() || (!s.Sidecar.Answered && !s.Writable()) }

// Fenced is true if MySQL was seen read-only, and no witness saw otherwise.
func (s Site) Fenced() bool { return s.SQLAnswers() && !s.Writable() }

// Gone is true if Kubernetes proves that neither mysqld nor the sidecar of the site can run.
func (s Site) Gone() bool {
	return !s.OtherVolume && (s.Pod.Ended && s.Only(s.Pod.UID) || s.Pod.OutOfService && s.Only(""))
}

// Follows is true for a replica of that site whose threads both run, and apply what comes at once.
func (s Site) Follows(source Site) bool {
	return s.MySQL.ReplicaOf == source.Name && s.MySQL.IORunning && s.MySQL.SQLRunning && !s.MySQL.Delayed
}

// NeverRan is true for a site none of whose pods has come to a node yet, and that no sidecar was started with as a peer: it has no
// sidecar to vouch for another site, and none would ask it. Each alone would nearly do; what is seen of pods may be a moment old.
func (s Site) NeverRan() bool {
	return s.Pod.Unplaced && !s.Listed && !s.Provisioned && !s.Sidecar.Answered && len(s.Runs) == 0
}

// Whole is true for a site that has all that it had when it was provisioned, whatever its mark says: it is on that very volume,
// and its server knows of no clone that began and did not end well. The mark goes when a clone is ordered, which may be long
// before the clone begins. In doubt it is false, or part of the data would pass for all of it (I12).
func (s Site) Whole() bool {
	return s.Noted && s.MySQL.Direct && !s.MySQL.NoClone && !s.MySQL.HalfCloned && !s.ThrownAway() && !s.MySQL.Executed.IsEmpty()
}

// LeavingForUpdate is what Site.Leaving says when an ordered update wants the role elsewhere.
const LeavingForUpdate = "its pod is to be updated"
