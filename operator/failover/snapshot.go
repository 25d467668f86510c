// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// Policy is what the group's spec says about failover, defaults filled in.
type Policy struct {
	Mode         v1alpha1.FailoverMode
	PollInterval time.Duration
	Threshold    int
	CrashGrace   time.Duration
	Cooldown     time.Duration
	// StallTimeout is for how long the volume of the active site may take no writes; zero means for ever.
	StallTimeout time.Duration
	DrainTimeout time.Duration
	LeaseTimeout time.Duration
	FenceTimeout time.Duration
	// MaxLost blocks an emergency failover that is known to lose more transactions; nil means no limit.
	MaxLost *int64
	// ForceTo names the site that a person orders to be promoted although writes may be lost; empty normally.
	ForceTo string
	// PlannedTo names the site to which a person asks the role to be moved without loss; empty normally.
	PlannedTo string
	// AbortPlanned gives a planned failover up that has not passed its gate.
	AbortPlanned bool
	// PlannedLagTimeout and PlannedPauseTimeout bound the wait before and after writes are stopped.
	PlannedLagTimeout, PlannedPauseTimeout time.Duration
	// PausedUntil is until when no role changes by itself; zero normally.
	PausedUntil time.Time
	// MaxReadLag takes a replica that lags more out of the Service of the readers; zero means no limit.
	MaxReadLag time.Duration
}

// LeaseMargin is added to the lease before it counts as run out.
const LeaseMargin = gate.LeaseMargin

// AskTimeout is how long one poll waits for a site that does not answer, at most.
const AskTimeout = wire.ReportPatience

// Snapshot is everything that was seen in one poll. Sites are sorted by name.
type Snapshot struct {
	Now time.Time
	// Group is what commands for people name it.
	Group  Group
	Policy Policy
	Status Durable
	Sites  []Site
	// LeaderSince is when this process became the leader. What an earlier leader answered is not known, so it counts as
	// if it had answered everybody just then.
	LeaderSince time.Time
	// Answered is, for each site, when this operator last answered its sidecar under an epoch below Status.Epoch.
	Answered map[string]time.Time
	// Renewed is, for each site, when this operator last answered its sidecar under any epoch.
	Renewed map[string]time.Time
	// Permitted is, for each site, when this operator last gave its sidecar a statement on which it may open.
	Permitted map[string]time.Time
	// Nodes are those of the runs in Status and of the pods that are seen, EndedPods the pods that were seen to go after their kubelet
	// had told that all their containers ended.
	Nodes     map[string]Node
	EndedPods map[string]bool
}

// Durable is the part of the group's status that decisions rest on. It is persisted before any effect.
type Durable struct {
	Epoch         int64
	ActiveSite    string
	ActiveSince   time.Time
	CooldownUntil time.Time
	Transition    *Transition
	Records       []v1alpha1.FailoverRecord
	Planned       *Planned
	// Outlived are the sites that were seen to accept writes after their lease must have ended, sorted.
	Outlived []string
	// Runs are the incarnations of each site that are not known to have ended, in the order in which they were seen.
	Runs map[string][]Run
	// RowsOutside is how many tables with rows outside InnoDB the active site had when it was last seen open.
	RowsOutside int
}

// Transition is a change of the active site under way; see v1alpha1.Transition.
type Transition struct {
	Kind         v1alpha1.FailoverKind
	Step         v1alpha1.TransitionStep
	From, To     string
	FromUUID     string
	Reason       Reason
	DetectedAt   time.Time
	StartedAt    time.Time
	GatePassedAt time.Time
	FromExecuted gtid.Set
	ToExecuted   gtid.Set
	Evidence     []string
}

// Change is what a transition does with the role.
type Change string

// The changes.
const (
	// ChangeFirst gives the role to the first active site, where nobody is known to have had it.
	ChangeFirst Change = "First"
	// ChangeTakeover gives it to another site because the active one is lost, or by order.
	ChangeTakeover Change = "Takeover"
	// ChangeMove gives it to another site while the active one is alive.
	ChangeMove Change = "Move"
	// ChangeReopen opens the site again that has it: after a move that was given up, or behind the gate for an earlier pod of it.
	ChangeReopen Change = "Reopen"
)

// Change is told apart by who had the role and who gets it.
func (t *Transition) Change() Change {
	switch {
	case t.From == "":
		return ChangeFirst
	case t.From == t.To:
		return ChangeReopen
	case t.Kind == v1alpha1.FailoverPlanned:
		return ChangeMove
	}
	return ChangeTakeover
}

// replaces is true if one site gets the role that another has.
func (t *Transition) replaces() bool { return t.Change() == ChangeMove || t.Change() == ChangeTakeover }

// reopens is true for the record of a change that opened the site again that had the role.
func reopens(r v1alpha1.FailoverRecord) bool { return r.From == r.To }

// Site is what was seen of one site in one poll.
type Site struct {
	Name     string
	Role     v1alpha1.SiteRole
	Priority int32
	// Provisioned is true once the site's data is part of the group.
	Provisioned bool
	// Removed is true for a site that left the spec: it can never be promoted, but its pod may still run and vouch.
	Removed bool
	// Listed is true if the pod of another site was started with this one among its peers: it asks it, and may believe it.
	Listed bool
	// Unlisted is true if status says that no pod of another site was ever started with this one among its peers.
	Unlisted bool
	// OtherVolume is true if the site's data volume is not the one on which it was provisioned.
	OtherVolume bool
	// Impossible is true if its sidecar reported an epoch that nobody can have reached; what it said is left out then.
	Impossible bool
	// Unnoted is true if its data volume has a name and status holds none for the site.
	Unnoted bool
	// Noted is true if its data volume is the very one that status names for it.
	Noted bool
	// EscrowMissing is true if its pod is made sealed and the escrow Secret of its keyring is gone: the memory of that pod has the
	// only copy, and whatever restarts the pod makes its data unreadable.
	EscrowMissing bool
	// Busy names long work on the site (WorkClone, WorkRotation); such a site is no candidate.
	Busy string
	// Leaving says why the site is about to go: its pod is being deleted, its node drained, an update waits. Empty normally.
	Leaving string
	Sidecar Sidecar
	MySQL   MySQL
	Pod     Pod
	// Runs are the incarnations of the site that may still run; Decide fills them in.
	Runs []Run
}

// Sidecar is what the site's sidecar answered to this poll's push.
type Sidecar struct {
	Answered bool
	Report   wire.Report
	At       time.Time
	// Deaf is true if it answers and takes no statement, because nothing leads it to the key that signs. Answered is false then, as for
	// one that is silent: it opens on nothing that it is told and acknowledges no epoch. Only what it says of its lease counts.
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
	// NoClone is true if the server has no clone plugin, so that the two above are not known.
	NoClone       bool
	UserDatabases int
}

// Pod is the Kubernetes evidence on a site.
type Pod struct {
	Exists bool
	Name   string
	UID    string
	Node   string
	// Ended is true if the site's pod has ended for good (phase Failed or Succeeded: its containers never start again),
	// told by the kubelet of a Ready node, and that pod had held the volume's lock, so that none before it runs.
	Ended bool
	// Lease is the lease and the fence's deadline that the pod's sidecar was started with; zero when unknown.
	Lease time.Duration
	// OutOfService is true if a person tainted the pod's node, or the node its volume is bound to, as down.
	OutOfService bool
	// Runs are the pods of the site that have a node, the oldest first.
	Runs []SeenRun
	// Unplaced is true if no node is known on which a pod of the site ever was.
	Unplaced bool
}

// All is what the site has: applied or still in its relay log.
func (s Site) All() gtid.Set { return s.MySQL.Executed.Union(s.MySQL.Retrieved) }

// Long work on a site, as Busy names it.
const (
	WorkClone    = "Clone"
	WorkRotation = "Rotation"
)

// thrownAway is true while a clone replaces what the site has. A rotation of master keys leaves it whole.
func (s Site) thrownAway() bool { return s.Busy == WorkClone || s.MySQL.Cloning }

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

// unusable is true if MySQL does not answer, or is read-only without a sidecar that could open it.
func (s Site) unusable() bool { return !s.SQLAnswers() || (!s.Sidecar.Answered && !s.Writable()) }

// Fenced is true if MySQL was seen read-only and by no witness otherwise.
func (s Site) Fenced() bool { return s.SQLAnswers() && !s.Writable() }

// gone is true if Kubernetes proves that neither mysqld nor the sidecar of the site can run.
func (s Site) gone() bool {
	return !s.OtherVolume && (s.Pod.Ended && s.only(s.Pod.UID) || s.Pod.OutOfService && s.only(""))
}

// follows is true for a replica of that site whose threads both run.
func (s Site) follows(source Site) bool {
	return s.MySQL.ReplicaOf == source.Name && s.MySQL.IORunning && s.MySQL.SQLRunning
}

// neverRan is true for a site of which no pod came to a node yet, and that no sidecar was started with as a peer: there is nobody
// to vouch for another one, and nobody would ask. Each alone would nearly do; what is seen of pods may be a moment old.
func (s Site) neverRan() bool {
	return s.Pod.Unplaced && !s.Listed && !s.Provisioned && !s.Sidecar.Answered && len(s.Runs) == 0
}

// Site returns a site by name.
func (s Snapshot) Site(name string) (Site, bool) {
	for _, site := range s.Sites {
		if site.Name == name {
			return site, true
		}
	}
	return Site{}, false
}

// Memory is what is remembered between polls and may be forgotten at any time: forgetting only makes the system wait
// longer, never act sooner.
type Memory struct {
	// DownSince is when a site was first seen without a usable MySQL, in an unbroken row of polls.
	DownSince map[string]time.Time
	// SilentPolls counts the polls in a row in which the site could neither be seen writable nor be opened.
	SilentPolls map[string]int
	// Executed is the last known executed set of each site.
	Executed map[string]gtid.Set
	// PreviousAll is what each site had in the poll before, to be compared with a later look at the active site.
	PreviousAll map[string]gtid.Set
	// Acks is the best acknowledgement of each site's sidecar.
	Acks map[string]Ack
	// FencedBySQL is when the operator itself read a site's fence back, and under which epoch.
	FencedBySQL map[string]SQLFence
	// GoneSince is when Kubernetes evidence first said that a site cannot run.
	GoneSince map[string]time.Time
	// Diverged holds the errant set of diverged sites.
	Diverged map[string]gtid.Set
	// IndirectSince is when a site's MySQL stopped to answer the operator itself, in an unbroken row of polls.
	IndirectSince map[string]time.Time
	// OtherVolume holds the sites that were last seen on another volume than the one that holds their data.
	OtherVolume map[string]bool
	// Confirmed is, for each site, the pod whose sidecar reported the volume that holds its data.
	Confirmed map[string]string
	// UUID is the last known server UUID of each site.
	UUID map[string]string
	// ReopenSince is when the active site was first asked to open again, in an unbroken row of polls.
	ReopenSince time.Time
	// Lease is the longest lease and fence deadline that each site's sidecar is known to have been started with.
	Lease map[string]time.Duration
	// LeavingOf is since when each site is about to go, in an unbroken row of polls.
	LeavingOf map[string]time.Time
	// LeavingSince is when the active site was first seen about to go, in an unbroken row of polls.
	LeavingSince time.Time
	// HopeAt is when a site last was the only candidate that had caught up, LaggedAt when it last lagged more than readers may see.
	HopeAt, LaggedAt map[string]time.Time
	// FollowedAt is when a site last followed an active site that was open, OpenAt when there last was one.
	FollowedAt map[string]time.Time
	OpenAt     time.Time
	// AloneAt is when a site's live keyring was last seen in its pod alone.
	AloneAt map[string]time.Time
	// DrainSince is when the target's drain was first asked for in this transition.
	DrainSince time.Time
	// WritableAt is when a site was last seen to accept writes by any witness, HeardUntil until when its lease may stand by what its
	// sidecar reported last.
	WritableAt, HeardUntil map[string]time.Time
	// Outlived holds the sites that were seen to accept writes after their lease must have ended.
	Outlived map[string]bool
	// Runs is what is known of the incarnations of the sites.
	Runs runs
	// Listed holds the sites that the pod of another one was once seen to be started with as a peer.
	Listed map[string]bool
	// StalledSince is when the volume of a site that is open was first seen to take no writes, in an unbroken row of reports.
	StalledSince map[string]time.Time
}

// Ack is the acknowledgement of an epoch by a site's sidecar, SQLFence a fence that the operator carried out and read back itself.
type (
	Ack      = gate.Ack
	SQLFence = gate.ReadBack
)
