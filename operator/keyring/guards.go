// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The guards and effects of the transitions in phase.go, in the order of the rows.

func always(Group, Site) bool { return true }

// seen is true for a site whose pod can write its keyring: the work of a row is on such a site.
func seen(s Site) bool { return written(s.Status) }

func isNew(_ Group, s Site) bool {
	return len(s.Versions) == 0 && !s.Provisioned && !s.Rendered.Sealed && !s.told() && (s.isReplaced() || !s.mayTell())
}

func bootstrap(_ Group, n *Next) {
	n.unseal(v1alpha1.KeyringBootstrap, Version{})
}

func isPatchedSealing(_ Group, s Site) bool { return s.Status.Stage == v1alpha1.KeyringSealing }

func isPatched(_ Group, s Site) bool { return s.Status.Work != "" }

func isAdopted(g Group, s Site) bool {
	return mayAdopt(g, s) && adoptionWaits(g) == "" && adoptedNext(g) == s.Name
}

func adopt(_ Group, n *Next) {
	n.say(EventAdopted, fmt.Sprintf("Site %s is encrypted from now on; tables that exist stay in the clear until they are rebuilt", n.Name))
	n.unseal(v1alpha1.KeyringRotation, Version{})
}

func isRolledBack(_ Group, s Site) bool {
	return s.Rendered.Sealed && s.Rendered.Secret != s.Status.KeyringSecret
}

func rollBack(_ Group, n *Next) { n.Status.Stage = v1alpha1.KeyringSealing }

func isEmptied(_ Group, s Site) bool {
	return s.Pod.Empty && !s.Active && !s.Provisioned && !written(s.Status)
}

func isRecloned(_ Group, s Site) bool {
	if s.Active || s.Provisioned || s.Clone == CloneNone || written(s.Status) {
		return false // I14: only a site that is marked as one without data is unsealed for a clone
	}
	_, have := s.current()
	if s.Status.Phase == sealed && have && !s.Pod.Lost {
		return true
	}
	return s.Clone == CloneConfirmed
}

func beginClone(_ Group, n *Next) {
	n.Status.Work, n.Status.Stage, n.Status.Rotated = v1alpha1.KeyringClone, "", false
}

func isOrdered(g Group, s Site) bool {
	return g.Known && ordered(g, s) && !s.Status.Rotated && mayBegin(g, s)
}

func beginRotation(_ Group, n *Next) { n.Status.Work = v1alpha1.KeyringRotation }

// isAnswered is also true if an order is open, but is another one than the rotation was carried out for: nothing was done for it.
func isAnswered(g Group, s Site) bool {
	return s.Status.Rotated && (!ordered(g, s) || g.RotateID != s.Status.Request)
}

func forgetRotation(_ Group, n *Next) { n.Status.Rotated, n.Status.Request = false, "" }

func isWithdrawn(g Group, s Site) bool {
	if s.Status.Work == v1alpha1.KeyringClone {
		return s.Provisioned || s.Active
	}
	return !ordered(g, s) || s.Active || g.Transition || g.PlannedTo != ""
}

func withdraw(g Group, n *Next) {
	if ordered(g, n.site) && n.Status.Work == v1alpha1.KeyringRotation {
		n.refuse(g, n.site)
	}
	n.Status.Work, n.Status.Stage = "", ""
}

// isCloneMoot: a person ordered the site's promotion before the pod came in which it was to be cloned.
func isCloneMoot(_ Group, s Site) bool {
	return s.Status.Work == v1alpha1.KeyringClone && (s.Active || s.Provisioned) && s.Rendered.Sealed
}

func giveUpClone(_ Group, n *Next) { n.endRound() }

func unseal(_ Group, n *Next) {
	seed, have := n.site.current()
	if !have || n.site.Pod.Lost && n.site.Clone == CloneConfirmed {
		// Only a clone comes here without a seed. The data that the old keyring reads is about to be replaced, and may be gone already.
		seed = Version{}
	}
	n.unseal(n.Status.Work, seed)
}

// newer is the newest version that was escrowed in this round. Versions from before the round open nothing that was written
// in it: neither older ones, whose keys a fresh keyring lacks, nor newer ones that a roll-back left.
func newer(s Site) (Version, bool) {
	return s.newest(func(v Version) bool { return v.Number > max(s.Status.SeedVersion, s.Status.FloorVersion) })
}

// lost is true if a pod that could write its keyring is gone, and the next pod cannot start without that keyring. A site
// that was never unsealed from a version starts again without help, with a new datadir.
func lost(s Site) bool { return (s.Pod.Lost || s.starved()) && seen(s) }

func isLostDone(_ Group, s Site) bool {
	_, have := newer(s)
	// A keyring that was escrowed in the middle of a rotation has one of two new keys. A pod that is unsealed again compares it with
	// what the data needs before mysqld starts; a sealed pod would just never start.
	return lost(s) && have && workDone(s) && s.Status.Work != v1alpha1.KeyringRotation
}

func sealNewest(_ Group, n *Next) {
	v, _ := newer(n.site)
	n.hold(v)
	n.Status.Stage = v1alpha1.KeyringSealing
}

func isLostEscrowed(_ Group, s Site) bool {
	_, have := newer(s)
	return lost(s) && have
}

func reseed(_ Group, n *Next) {
	v, _ := newer(n.site)
	stage, pod := n.Status.Stage, n.Status.RotationPod
	n.hold(v)
	n.unseal(n.Status.Work, v)
	// What was rotated stays rotated: the escrowed keyring may hold only a part of the new keys.
	n.Status.Stage, n.Status.RotationPod = stage, pod
}

// lostKeys is true if master keys were only in the memory of a pod that is gone.
func lostKeys(s Site) bool {
	_, have := newer(s)
	return s.Pod.Lost && seen(s) && !have && !s.Active && s.Status.Work == v1alpha1.KeyringRotation && s.Status.Stage == v1alpha1.KeyringRotating
}

func isLostKeys(g Group, s Site) bool {
	// I15: the mark is durably off before anything is wiped.
	if !lost(s) || s.Active || s.Provisioned || !g.Donor {
		return false
	}
	if !s.Pod.Lost {
		return s.Clone == CloneConfirmed // once restored, the escrow Secret that the pod waits for would read the data
	}
	return s.Status.Work == v1alpha1.KeyringRotation || s.Status.SeedVersion > 0 || isOrderedAnew(s)
}

// isOrderedAnew is true if a person gives up keys that were made in this very round: they were in escrow and are there no longer,
// so the sidecar keeps the data. At most one new round begins for each pod that says so.
func isOrderedAnew(s Site) bool {
	return s.Clone == CloneConfirmed && s.Pod.Round == s.Status.Round
}

func cloneInstead(_ Group, n *Next) { n.unseal(v1alpha1.KeyringClone, Version{}) }

// isUntouched is true if a site that is unsealed for a rotation still has the keyring that it was seeded from. A report may be
// older than the end of a rotation, and a restarted operator knows of no rotation.
func isUntouched(s Site) bool {
	st := s.Status
	return seen(s) && st.Work == v1alpha1.KeyringRotation && st.SeedVersion > 0 && !st.Rotated && !s.Job.Running && !s.Job.Done &&
		s.live() == st.SeedDigest && !s.outlived() && s.Calm >= calmBeforeSealing
}

func isOvertaken(_ Group, s Site) bool { return s.Active && isUntouched(s) }

// isTakenBack needs the stage too: it says durably that no rotation was begun.
func isTakenBack(g Group, s Site) bool {
	return !ordered(g, s) && s.Provisioned && s.Status.Stage == "" && isUntouched(s)
}

func giveUp(g Group, n *Next) {
	v, _ := n.site.newest(func(v Version) bool { return v.Number == n.Status.SeedVersion })
	if v.Name != "" {
		n.hold(v)
	}
	n.Status.Stage = v1alpha1.KeyringSealing
	if ordered(g, n.site) {
		n.refuse(g, n.site)
	}
}

func isToRotate(g Group, s Site) bool {
	return s.Status.Work == v1alpha1.KeyringRotation && seen(s) && s.Status.Stage == "" && !s.Status.Rotated && !s.Active &&
		(mayRotate(g, s) || !s.Provisioned && s.live() != "")
}

func rotating(_ Group, n *Next) {
	n.Status.Stage, n.Status.RotationPod = v1alpha1.KeyringRotating, n.site.Pod.UID
	n.Status.Since = &n.now // from here on there may be keys that are not in escrow
}

func isRotated(_ Group, s Site) bool {
	return s.Job.Done && s.Status.Stage == v1alpha1.KeyringRotating && !s.Status.Rotated
}

func rotated(_ Group, n *Next) {
	n.Status.Rotated = true
	n.say(EventRotated, fmt.Sprintf("Both master keys of site %s were rotated; its new keyring goes into escrow", n.Name))
}

// stored is the version in escrow that equals the live keyring and is new enough for the work. A keyring that is being written has no
// digest, and every whole version has one.
func stored(s Site) (Version, bool) {
	st, live := s.Status, s.live()
	if !seen(s) {
		return Version{}, false
	}
	if st.Work != v1alpha1.KeyringRotation {
		return s.newest(func(v Version) bool { return v.Digest == live })
	}
	if !st.Rotated && !s.Active {
		return Version{}, false // escrow has only the keyring from before the rotation
	}
	return s.newest(func(v Version) bool { return v.Digest == live && v.Number > max(st.SeedVersion, st.FloorVersion) })
}

func isEscrowed(_ Group, s Site) bool {
	_, ok := stored(s)
	return ok
}

func escrow(_ Group, n *Next) {
	v, _ := stored(n.site)
	n.hold(v)
	n.say(EventEscrowed, fmt.Sprintf("The keyring of site %s is in escrow as %s", n.Name, v.Name))
}

func isLate(g Group, s Site) bool {
	since := s.Status.Since
	return since != nil && g.EscrowTimeout > 0 && g.Now.Sub(since.Time) >= g.EscrowTimeout && !isUntold(s)
}

// isUntold is true for a rotation that waits for its turn: no key was made, and the keyring that reads the data is in escrow. A round
// that began from a fresh keyring has no such version.
func isUntold(s Site) bool {
	st := s.Status
	if st.Work != v1alpha1.KeyringRotation || st.Stage != "" || st.Rotated {
		return false
	}
	_, have := s.newest(func(v Version) bool { return v.Number == st.SeedVersion && v.Digest == st.SeedDigest })
	return have && (s.live() == st.SeedDigest || s.Rendered.Sealed)
}

func late(g Group, n *Next) {
	why := waitsFor(g, n.site)
	n.say(EventNotEscrowed, fmt.Sprintf("The keyring of site %s has not been in escrow for %s: %s. The operator keeps trying", n.Name, g.EscrowTimeout, why))
}

func isChanged(_ Group, s Site) bool {
	live := s.live()
	return live != "" && live != s.Status.KeyringDigest && s.Status.Work != ""
}

func escrowAgain(_ Group, n *Next) {
	if n.Status.Stage == v1alpha1.KeyringSealing {
		n.Status.Stage = ""
	}
}

func isDone(_ Group, s Site) bool {
	return seen(s) && readyToSeal(s)
}

func startSealing(_ Group, n *Next) { n.Status.Stage = v1alpha1.KeyringSealing }

func isSealed(g Group, s Site) bool {
	return s.Status.Stage == v1alpha1.KeyringSealing && unsealedYet(g, s) == ""
}

func seal(_ Group, n *Next) {
	st := &n.Status
	switch {
	case onlyFound(*st):
		st.Rotated = false // an order that came meanwhile gets a rotation of its own
	case st.Work == v1alpha1.KeyringRotation && st.Rotated:
		st.RotatedVersion = st.KeyringVersion
	}
	n.endRound()
	n.say(EventSealed, fmt.Sprintf("The keyring of site %s is sealed with %s", n.Name, st.KeyringSecret))
}
