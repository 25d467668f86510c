// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Short names of what the API calls them.
type (
	// Reason is v1alpha1.Reason.
	Reason = v1alpha1.Reason
	// Transition is v1alpha1.CacheTransition.
	Transition = v1alpha1.CacheTransition
	// Promotion is v1alpha1.CachePromotion.
	Promotion = v1alpha1.CachePromotion
)

// Pod is what was seen of one site's cache in one look.
type Pod struct {
	Site string
	// Exists is true if the site has a pod that is not about to be replaced by another of the same name.
	Exists bool
	// Removed is true for a site that left the specification: its cache can never be made the master.
	Removed bool
	// Leaving says why the pod is about to go: it is being deleted, its node drained, an update waits. Empty normally.
	Leaving string

	// Reachable is true if the engine answered; what follows up to Keys is as of then.
	Reachable bool
	// Full is true if it has as many clients as it may have. If it is not Reachable, it refused the operator for that, and lives: see refuses.
	Full bool
	// Began is when its container began; zero if that is not known.
	Began time.Time
	// Run names the process that answered; another one may have come back empty.
	Run string
	// Role is master or replica.
	Role v1alpha1.CacheRole
	// Following is the site that a replica follows; empty if that is no cache of this group.
	Following string
	// Linked is true for a replica whose link to its master is up and past the first synchronisation.
	Linked bool
	// Syncing is true for a replica that gets its first copy.
	Syncing bool
	// FailingOver is true for one that hands over its role, or has done so and waits for the other to take it.
	FailingOver bool
	// Loading is true while it reads its data from a file.
	Loading bool
	// Offset counts the bytes of changes that it has written or received. Two offsets are comparable if one cache follows the other.
	Offset int64
	// Lag counts the changes that its master has not seen confirmed, with an engine whose masters name no offset (Dragonfly).
	Lag int64
	// Unlisted says why its master cannot hand over to it by its address, though it follows; empty if nothing speaks against it. Valkey's
	// command names the target by the address under which the master knows it.
	Unlisted string
	// Keys is how many it holds.
	Keys int64

	// RoleLabel and Traffic are the labels of the pod.
	RoleLabel v1alpha1.CacheRole
	Traffic   bool
	// CutAt, TrafficOffAt and TrafficOnAt are when this operator last did that; zero if it never has.
	CutAt, TrafficOffAt, TrafficOnAt time.Time

	// Trouble says to people why it cannot be asked; empty if it answers, or if the reason is not known.
	Trouble string
}

// Master is true for a pod that was seen to be a master with its data, and not in the middle of handing that over.
func (p Pod) Master() bool {
	return p.Reachable && p.Role == v1alpha1.CacheMaster && !p.FailingOver && !p.Loading
}

// Follows is true for a pod that replicates from a site and has all but the newest changes.
func (p Pod) Follows(site string) bool {
	return p.Reachable && p.Role == v1alpha1.CacheReplica && p.Linked && !p.Syncing && !p.Loading && p.Following == site
}

// TakesOver is true for a pod that follows a site, and to which the master there can hand over.
func (p Pod) TakesOver(site string) bool { return p.Follows(site) && p.Unlisted == "" }

// Behind is how much a replica lacks of what its master has: bytes, or changes with an engine whose masters name no offset.
func Behind(master, replica Pod) int64 {
	if master.Offset == 0 {
		return max(0, replica.Lag)
	}
	return max(0, master.Offset-replica.Offset)
}

// Apart is true for a pod that replicates from a site by name, and gets nothing from it.
func (p Pod) Apart(site string) bool {
	return p.Reachable && p.Role == v1alpha1.CacheReplica && !p.Linked && !p.Syncing && !p.Loading && p.Following == site
}

// farBehind is true for a replica that a take-over would have to wait for.
func farBehind(master, replica Pod) bool {
	if master.Offset == 0 {
		return replica.Lag > syncedChanges
	}
	return Behind(master, replica) > syncedBytes
}

// MySQL is what MySQL's failover has decided, as far as it is durable.
type MySQL struct {
	// Active is the site that is, or is about to be, open for writes; empty before the first.
	Active string
	Epoch  int64
	// Moving is true while its role moves. Kind is how it moves, or has moved under this epoch; empty if that is not known.
	Moving bool
	Kind   v1alpha1.FailoverKind
	// From is the site that its role leaves while it moves; empty if that is not known.
	From string
}

// Policy is what the specification says, defaults filled in.
type Policy struct {
	EmergencyBudget time.Duration
	// Held says why the operator moves no master on its own; empty normally. MySQL is followed all the same.
	Held string
}

// Request is what a person asks for in an annotation.
type Request struct {
	Site string
	// ID tells it from others.
	ID string
}

// Durable is the part of status.cache that decisions rest on. It is persisted before any effect.
type Durable struct {
	ActiveSite string
	ActiveRun  string
	Transition *Transition
	Last       *Promotion
}

// Snapshot is everything that was seen in one look. Pods are sorted by site.
type Snapshot struct {
	Now     time.Time
	Policy  Policy
	MySQL   MySQL
	Status  Durable
	Pods    []Pod
	Request *Request
	// Route is the site that the Service of the applications names; ByLabels if it follows the labels, as it does except for the
	// seconds around a move, and NoRoute if it leads nowhere or another client wrote it.
	Route string
}

// What the Service of the applications may follow instead of a site.
const (
	ByLabels = ""
	NoRoute  = "?"
)

// Pod returns the cache of a site; an unknown one does not exist.
func (s Snapshot) Pod(site string) Pod {
	for _, p := range s.Pods {
		if p.Site == site {
			return p
		}
	}
	return Pod{Site: site}
}

// refuses is true for a cache that lives and has no place for a client, not even for the operator: what it is and holds cannot be asked. It is
// not taken for the master that it was if its container began after the last change of the master: it may have come back empty then.
func (s Snapshot) refuses(p Pod) bool {
	last := s.Status.Last
	return p.Exists && p.Full && !p.Reachable && (last == nil || p.Began.Before(last.At.Time))
}

// Refuses is true if the cache of a site lives, and refuses the operator because it is full.
func (s Snapshot) Refuses(site string) bool { return s.refuses(s.Pod(site)) }

// Home is where the master belongs: beside the active MySQL.
func (s Snapshot) Home() string { return s.MySQL.Active }

// SiteMemory is what is remembered about one site.
type SiteMemory struct {
	// AwaySince is since when its pod is not a master that answers, LinkedSince since when it follows the master in full.
	AwaySince, LinkedSince time.Time
	// SilentSince is since when it does not answer.
	SilentSince time.Time
	// MissedSince is AwaySince without the time in which no cache answered and its pod was there: an operator that is cut off learns nothing
	// about the master, and must not hold its own silence against it.
	MissedSince time.Time
	// ApartSince is since when it names the master, and neither is linked to it nor gets a first copy from it; or when it was last told again.
	ApartSince time.Time
	// FullAt is when it was last seen to take no more clients; zero once that was some time ago. FullTold is true if that was reported.
	FullAt   time.Time
	FullTold bool
	// BehindSince is since when it follows the master and is far behind.
	BehindSince time.Time
	// HeldRun is the process of the master that it followed in full when both were last seen.
	HeldRun string
}

// Memory is what is remembered from one look to the next. Losing it costs a wait and nothing else.
type Memory struct {
	// LookedAt is when the last look was.
	LookedAt time.Time
	// Began is when this memory began.
	Began time.Time
	Sites map[string]SiteMemory
	// HungSince is since when the old master has let go and no other has taken over.
	HungSince time.Time
	// FailedAt is when a move that had begun under FailedEpoch was given up.
	FailedAt    time.Time
	FailedEpoch int64
	// StaysEpoch is under which epoch it was last reported that the cache has not followed a planned failover of MySQL.
	StaysEpoch int64
	// Failed is the answer to a request whose move was given up, for as long as that request is open.
	Failed *Answer
	// OnlyAt is when the cache alone was last promoted.
	OnlyAt time.Time
	// StillSince is since when the role of MySQL has not moved under StillEpoch; zero while it moves.
	StillSince time.Time
	StillEpoch int64
}

func (m Memory) of(site string) SiteMemory { return m.Sites[site] }
