// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Group holds the facts that a decision rests on.
type Group struct {
	Name string
	Now  time.Time

	RetainVersions int
	EscrowTimeout  time.Duration
	// DataFile is where MySQL must say that the keyring is.
	DataFile string
	// Adopt is true if a person accepted that existing data stays in the clear.
	Adopt bool
	// EscrowTrouble says why keyrings would not come into escrow; empty if they would, or if that was not checked.
	EscrowTrouble string

	// Known is false while the poll loop has seen nothing yet, or sees something else than status says: then no order is refused.
	Known bool
	// Transition is true while the active site changes; PlannedTo is the target of a planned failover under way.
	Transition bool
	PlannedTo  string
	// Update says which ordered update is in flight; empty if none is.
	Update string
	// Donor is true if the active site is open and holds the group's data: a site that loses its data can be cloned again.
	Donor bool

	// RotateSet is true if the annotation rotate-keyring is there and not answered yet; Rotate is its value.
	RotateSet bool
	Rotate    string
	// RotateID tells the order apart from others.
	RotateID string

	// Sites come in the order of the specification.
	Sites []Site
}

// Site is one site as it is now.
type Site struct {
	Name string
	// Status is the persisted status; the zero value if there is none.
	Status v1alpha1.SiteKeyringStatus

	// Active is true for the active site and for the one that is about to become it. I20 rests on it.
	Active bool
	// Passive is true for a site that is never promoted.
	Passive bool
	// Provisioned is true if the persisted status says that the site holds the group's data.
	Provisioned bool
	// Diverged is true if the site has, or may have, transactions that no other site has; Alone if no site but the active
	// one is a healthy copy of the data.
	Diverged, Alone bool
	// Busy is true while long work runs on the site.
	Busy bool
	// Clone says whether the site's data is about to be replaced.
	Clone Clone

	// Versions are the escrow Secrets that exist, read from the API server.
	Versions []Version
	// Rendered says how the present Deployment was made.
	Rendered Rendered
	// InUse names the escrow Secrets that the present Deployment or a pod of the site refers to.
	InUse []string
	Pod   Pod
	// Report is what the sidecar of that pod says of its keyring; nil if it says nothing.
	Report *wire.KeyringReport
	// Calm is how long, at the time of the report, the live digest and the work on the site had not changed: a report that is
	// older than the last change proves nothing.
	Calm time.Duration
	// TokenRound is the round for which the token Secret was made; 0 if there is none.
	TokenRound int64
	// Job says how the rotation that was begun on the site went.
	Job Job
}

// Clone says whether a site's data is about to be replaced.
type Clone string

// The wishes for a clone. CloneConfirmed lets the operator throw away data that cannot be read any more.
const (
	CloneNone      Clone = ""
	CloneWanted    Clone = "Wanted"
	CloneConfirmed Clone = "Confirmed"
)

// Version is one escrow Secret.
type Version struct {
	Name   string
	Number int64
	// Digest is that of its present content, Annotated the one that it was stored with.
	Digest, Annotated string
	// Size is the length of its content in bytes; 0 if not known.
	Size int
}

// whole is true if the content is what was stored.
func (v Version) whole() bool { return v.Digest != "" && v.Digest == v.Annotated }

// Rendered says how a Deployment was made.
type Rendered struct {
	Exists bool
	// Keyring is true if it has a keyring, Sealed if that keyring is projected from escrow.
	Keyring, Sealed bool
	// Secret is the escrow Secret that it projects; empty unless it is sealed.
	Secret string
}

// Pod is the pod of a site.
type Pod struct {
	// UID identifies the pod, and is never reused.
	UID string
	// Current is true if the pod has the Deployment's template and is not being deleted.
	Current, Ready bool
	// Lost is true if the pod cannot start, because its keyring was in the memory of the pod before it.
	Lost bool
	// proven is Lost as the caller gave it: the pod itself said so.
	proven bool
	// Unborn is true if the pod has not begun to start, or not from the keyring that it was given: it has no keyring in its memory.
	Unborn bool
	// Round is the round for which the pod was made; 0 if it was made sealed.
	Round int64
	// Silent is true if mysqld ended after every start in this pod and has not answered for long. That can have many reasons.
	Silent bool
	// Empty is true if the pod was made sealed, and says that its volume holds no data.
	Empty bool
	// Plain is true if the pod should have made data, says that it found data which was never encrypted, and has changed nothing.
	Plain bool
	// Settled is true if the pod plays its role in the group.
	Settled bool
	// Projects is the escrow Secret that the pod has mounted read-only as its keyring, with nothing mounted over it.
	Projects string
}

// Job is the state of a rotation.
type Job struct {
	Running, Done bool
	// Trouble says why the last try failed.
	Trouble string
	// Failures counts the failed tries. Each may have left both new master keys, or one of them.
	Failures int
}

// version finds an escrow Secret by name.
func (s Site) version(name string) (Version, bool) {
	i := slices.IndexFunc(s.Versions, func(v Version) bool { return v.Name == name })
	if i < 0 {
		return Version{}, false
	}
	return s.Versions[i], true
}

// newest returns the whole version with the highest number that satisfies a predicate.
func (s Site) newest(holds func(Version) bool) (Version, bool) {
	var best Version
	for _, v := range s.Versions {
		if v.whole() && holds(v) && v.Number > best.Number {
			best = v
		}
	}
	return best, best.Number > 0
}

// live is the digest of the keyring that an unsealed pod can write; empty if there is none, or while MySQL writes it.
func (s Site) live() string {
	if s.Report == nil || s.Report.Sealed {
		return ""
	}
	return s.Report.Digest
}

// current is the escrow Secret that status names, if it exists with the digest that status has.
func (s Site) current() (Version, bool) {
	v, _ := s.version(s.Status.KeyringSecret)
	return v, v.Digest != "" && v.Digest == s.Status.KeyringDigest
}

// outlived is true if the keyring that an unsealed pod reported is not the last one that was escrowed in this round: the pod has had
// another keyring since, whatever the report says. A sidecar that continues with an earlier one stores it again, so this passes.
func (s Site) outlived() bool {
	last := max(s.Status.FloorVersion, s.Status.SeedVersion)
	for _, v := range s.Versions {
		if v.Digest == s.live() {
			last = max(last, v.Number)
		}
	}
	_, later := s.newest(func(v Version) bool { return v.Number > last })
	return later
}

// starved is true if the pod of an unsealed site waits for an escrow Secret that is gone or changed: it has no keyring in its memory,
// and cannot start.
func (s Site) starved() bool { return s.seedIsGone() && s.unborn() }

// seedIsGone is true if the escrow Secret that a site is unsealed from is gone or changed.
func (s Site) seedIsGone() bool {
	number, digest := seedOf(s.Status)
	_, have := s.newest(func(v Version) bool { return v.Number == number && v.Digest == digest })
	return written(s.Status) && number > 0 && !have
}

// unborn is true for a pod that was made for this very round and has no keyring.
func (s Site) unborn() bool { return s.Pod.Current && s.Pod.Unborn && s.Pod.Round == s.Status.Round }

// inEscrow is true if the keyring that an unsealed pod holds is stored in escrow.
func (s Site) inEscrow() bool {
	_, stored := s.newest(func(v Version) bool { return v.Digest == s.live() })
	return stored
}

// plain is true for a site that serves without a keyring.
func (s Site) plain() bool {
	return s.Status.Phase == "" && s.Provisioned && s.Rendered.Exists && !s.Rendered.Keyring
}

// MayClone is true if a clone into a site may begin: a clone writes the keyring, and status says that this is allowed.
func MayClone(st v1alpha1.SiteKeyringStatus) bool {
	return written(st) && (st.Work != v1alpha1.KeyringRotation || st.Stage == v1alpha1.KeyringRotating)
}

// written is true while the site's pod is made such that MySQL can write its keyring.
func written(st v1alpha1.SiteKeyringStatus) bool {
	return st.Work != "" && st.Phase != v1alpha1.KeyringPending && st.Stage != v1alpha1.KeyringSealing
}
