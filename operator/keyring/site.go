// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Group is what a decision stands on.
type Group struct {
	Name string
	Now  time.Time

	RetainVersions int
	EscrowTimeout  time.Duration
	// DataFile is where MySQL must say that the keyring is.
	DataFile string
	// Adopt is true if a person accepted that data which is in the clear stays so.
	Adopt bool
	// EscrowTrouble says why keyrings would not come into escrow; empty if they would, or if nobody asked.
	EscrowTrouble string

	// Known is false as long as the poll loop has seen nothing, or something else than status says: then nothing is refused.
	Known bool
	// Transition is true while the active site changes; PlannedTo is the target of a planned failover that is under way.
	Transition bool
	PlannedTo  string
	// Update says which ordered update is in flight; empty if none.
	Update string
	// Donor is true if the active site is open and holds the group's data: whoever loses its own can be cloned anew.
	Donor bool

	// RotateSet is true if the annotation rotate-keyring is there and was not answered yet, Rotate is its value.
	RotateSet bool
	Rotate    string
	// RotateID tells the order from others.
	RotateID string

	// Sites come in the order of the specification.
	Sites []Site
}

// Site is one site as it is now.
type Site struct {
	Name string
	// Status is what was persisted; the zero value if nothing was.
	Status v1alpha1.SiteKeyringStatus

	// Active is true for the active site and for the one that is about to become it. I20 rests on it.
	Active bool
	// Passive is true for a site that is never promoted.
	Passive bool
	// Provisioned is true if it is persisted that the site holds the group's data.
	Provisioned bool
	// Diverged is true if the site has, or may have, transactions that nobody else has; Alone if no other site than the
	// active one is a healthy copy.
	Diverged, Alone bool
	// Busy is true while long work runs on the site.
	Busy bool
	// Clone says whether the site's data is to be replaced.
	Clone Clone

	// Versions are the escrow Secrets that exist, read from the API server.
	Versions []Version
	// Rendered is what the Deployment in place was made with.
	Rendered Rendered
	// InUse are the names of the escrow Secrets that the Deployment in place or a pod of the site refers to.
	InUse []string
	Pod   Pod
	// Report is what the sidecar of that pod says; nil if it says nothing, or nothing of a keyring.
	Report *wire.KeyringReport
	// Calm is for how long the live digest and what was done with the site had stayed as they are when the report was made: a
	// report that is older than the last change proves nothing.
	Calm time.Duration
	// TokenRound is the round for which the token Secret was made; 0 if there is none.
	TokenRound int64
	// Job is what became of the rotation that was begun on the site.
	Job Job
}

// Clone is whether a site's data is to be replaced.
type Clone string

// The wishes for a clone. CloneConfirmed lets data be thrown away that nobody can read any more.
const (
	CloneNone      Clone = ""
	CloneWanted    Clone = "Wanted"
	CloneConfirmed Clone = "Confirmed"
)

// Version is one escrow Secret.
type Version struct {
	Name   string
	Number int64
	// Digest is that of its content as it is now, Annotated the one that it was stored with.
	Digest, Annotated string
	// Size is that of its content in bytes; 0 if it is not known.
	Size int
}

// whole is true if the content is what was once stored.
func (v Version) whole() bool { return v.Digest != "" && v.Digest == v.Annotated }

// Rendered is how a Deployment was made.
type Rendered struct {
	Exists bool
	// Keyring is true if it has one, Sealed if that is projected from escrow.
	Keyring, Sealed bool
	// Secret is the escrow Secret that it projects; empty unless it is sealed.
	Secret string
}

// Pod is the pod of a site.
type Pod struct {
	// UID names the pod for ever.
	UID string
	// Current is true if the pod is of the Deployment's template and not on its way out.
	Current, Ready bool
	// Lost is true if the pod cannot start: its keyring was in the memory of the one before it.
	Lost bool
	// proven is Lost as it was given: the pod itself said so.
	proven bool
	// Unborn is true if the pod has not begun to start, or not from the keyring that it was given: it has none in its memory.
	Unborn bool
	// Round is the round that the pod was made for; 0 if it was made sealed.
	Round int64
	// Silent is true if mysqld ended at every start in this pod and has answered nobody for long. It may have many reasons.
	Silent bool
	// Empty is true if the pod is made sealed, and says that there is no data on its volume.
	Empty bool
	// Plain is true if the pod was to make data, says that there is some which was never encrypted, and has changed nothing.
	Plain bool
	// Settled is true if it does its part in the group.
	Settled bool
	// Projects is the escrow Secret that the pod has mounted read-only as its keyring, with nothing over it.
	Projects string
}

// Job is a rotation.
type Job struct {
	Running, Done bool
	// Trouble is why the last try did not succeed.
	Trouble string
	// Failures is how many tries did not succeed. Each may have left new master keys, or one of the two.
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

// newest returns the whole version with the greatest number of which a fact holds.
func (s Site) newest(holds func(Version) bool) (Version, bool) {
	var best Version
	for _, v := range s.Versions {
		if v.whole() && holds(v) && v.Number > best.Number {
			best = v
		}
	}
	return best, best.Number > 0
}

// live is the digest of the keyring that an unsealed pod can write; empty if there is none or it is being written.
func (s Site) live() string {
	if s.Report == nil || s.Report.Sealed {
		return ""
	}
	return s.Report.Digest
}

// current is the escrow Secret that status names, if it exists with the content that status names.
func (s Site) current() (Version, bool) {
	v, _ := s.version(s.Status.KeyringSecret)
	return v, v.Digest != "" && v.Digest == s.Status.KeyringDigest
}

// outlived is true if what an unsealed pod was seen with is not the last that was escrowed in this round: its pod has had another
// keyring since, whatever a report says. A sidecar that goes on with an earlier one stores it anew, so this passes.
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

// starved is true if the pod of an unsealed site waits for an escrow Secret that is gone, or is not what it was: it has no keyring in
// its memory, and cannot start.
func (s Site) starved() bool { return s.seedIsGone() && s.unborn() }

// seedIsGone is true if the escrow Secret that a site is unsealed from is not there any more, or is not what it was.
func (s Site) seedIsGone() bool {
	number, digest := seedOf(s.Status)
	_, have := s.newest(func(v Version) bool { return v.Number == number && v.Digest == digest })
	return written(s.Status) && number > 0 && !have
}

// unborn is true of a pod that was made for this very round, and has no keyring.
func (s Site) unborn() bool { return s.Pod.Current && s.Pod.Unborn && s.Pod.Round == s.Status.Round }

// inEscrow is true if what an unsealed pod holds is stored.
func (s Site) inEscrow() bool {
	_, stored := s.newest(func(v Version) bool { return v.Digest == s.live() })
	return stored
}

// plain is true for a site that serves without a keyring.
func (s Site) plain() bool {
	return s.Status.Phase == "" && s.Provisioned && s.Rendered.Exists && !s.Rendered.Keyring
}

// MayClone is true if a clone into a site may begin: it writes the keyring, and status knows that it may.
func MayClone(st v1alpha1.SiteKeyringStatus) bool {
	return written(st) && (st.Work != v1alpha1.KeyringRotation || st.Stage == v1alpha1.KeyringRotating)
}

// written is true while the site's pod is made so that its keyring can be written.
func written(st v1alpha1.SiteKeyringStatus) bool {
	return st.Work != "" && st.Phase != v1alpha1.KeyringPending && st.Stage != v1alpha1.KeyringSealing
}
