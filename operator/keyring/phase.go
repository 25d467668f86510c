// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	none     = v1alpha1.KeyringPhase("")
	pending  = v1alpha1.KeyringPending
	unsealed = v1alpha1.KeyringUnsealed
	escrowed = v1alpha1.KeyringEscrowed
	sealed   = v1alpha1.KeyringSealed
	failed   = v1alpha1.KeyringFailed
)

// Transition is one row of the table. The first row whose From and guard fit is taken; a decision takes at most one for
// each site, so that every phase is persisted before the next. Trigger, Condition and Also are for the documentation.
type Transition struct {
	From      []v1alpha1.KeyringPhase
	Trigger   string
	Condition string
	To        v1alpha1.KeyringPhase
	Also      string

	when func(Group, Site) bool
	then func(Group, *Next)
}

// Table is every transition there is. Its order matters: what protects a keyring comes before what moves on.
var Table = []Transition{
	{
		[]v1alpha1.KeyringPhase{none}, "group created with encryption on, or site added",
		"the site holds no data, and nothing is in escrow for it", unsealed,
		"work `Bootstrap`: keys are made during initialisation; keyring on a memory-backed volume; escrow agent armed", isNew, bootstrap,
	},
	{
		[]v1alpha1.KeyringPhase{none, escrowed}, "status knows nothing of the keyring that a pod can write: a group that was made again while a site was unsealed",
		"that keyring is in no escrow, or not the one that status names", unsealed,
		"work `Rotation`, as one whose keys were rotated: the pod stays, and its keyring goes into escrow", isFoundLive, takeLive,
	},
	{
		[]v1alpha1.KeyringPhase{none}, "status knows nothing of a keyring that is in escrow: a re-created group, a site that came back",
		"no pod has another keyring in its memory, nor one that does not say which", escrowed,
		"rendered sealed with the version that its Deployment has, else with the highest one whose content has the digest that it was stored with", isFound, takeFound,
	},
	{
		[]v1alpha1.KeyringPhase{none}, "status knows nothing of a keyring with which a pod runs", "its escrow Secret is gone, or is not what was stored", failed,
		"event `KeyringEscrowMissing`; the pod is never replaced", isFoundMissing, takeMissing,
	},
	{
		[]v1alpha1.KeyringPhase{none}, "encryption turned on for a group that serves", "annotation `encryption-adopt` is `confirm`; its pod was made without a keyring; the escrow endpoint can be reached; the keyring of every other site that has one is in escrow; the active site comes last", unsealed,
		"work `Rotation` from a fresh keyring: nothing is ever wiped; what is in the clear stays so until it is rebuilt", isAdopted, adopt,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, failed}, "the pod of a new site says that its volume holds data in the clear: a group that was made again over volumes that stayed",
		"annotation `encryption-adopt` is `confirm`; one after the other, as for a group that serves", unsealed,
		"work `Bootstrap` again, with leave to go on from that data. Until then nothing is changed", isPlainAccepted, acceptPlain,
	},
	{
		[]v1alpha1.KeyringPhase{sealed, escrowed, failed}, "the volume of the site is found empty",
		"the site is not the active one, and is marked as one without data, which an empty volume does by itself", unsealed,
		"work `Bootstrap` from a fresh keyring: there is nothing that the old one could read", isEmptied, bootstrap,
	},
	{
		[]v1alpha1.KeyringPhase{sealed, escrowed, pending}, "the escrow Secret of the site disappears, or its content changes",
		"it is what the site is sealed, or about to be sealed, with; no confirmed clone is about to replace the data", failed,
		"event `KeyringEscrowMissing`; the pod is never restarted nor replaced", isMissing, miss,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed}, "the escrow Secret from which the site is to be unsealed disappears, or its content changes",
		"its pod was not replaced yet, and is sealed with it; no confirmed clone is about to replace the data", failed,
		"the unseal is given up: event `KeyringEscrowMissing`; the pod is never restarted nor replaced", isMissingBefore, missBefore,
	},
	{
		[]v1alpha1.KeyringPhase{sealed}, "a person patched the phase to `Sealed`", "the site was about to be sealed: nothing is proven yet", escrowed,
		"it goes on", isPatchedSealing, func(Group, *Next) {},
	},
	{
		[]v1alpha1.KeyringPhase{sealed}, "a person patched the phase to `Sealed`", "work was under way, and its pod may write its keyring", unsealed,
		"it goes on", isPatched, func(Group, *Next) {},
	},
	{
		[]v1alpha1.KeyringPhase{failed}, "manual recovery restores the Secret, and patches the phase", "restored digest equals status digest; work had ended", sealed,
		"without the patch too: the digest says enough", isRestored, restore,
	},
	{
		[]v1alpha1.KeyringPhase{failed}, "manual recovery restores the Secret", "restored digest equals status digest; the site was about to be sealed", escrowed,
		"goes on to be sealed", isRestoredSealing, restoreSealing,
	},
	{
		[]v1alpha1.KeyringPhase{sealed}, "status was patched to name another version that is in escrow", "its content has the digest that status names", escrowed,
		"the pod rolls to that version through the ordered update", isRolledBack, rollBack,
	},
	{
		[]v1alpha1.KeyringPhase{sealed, failed, escrowed}, "reclone of the site",
		"the site is not the active one; its pod is sealed. From `Failed`, and with a pod that cannot start, only with a confirmed order", pending,
		"work `Clone`", isRecloned, beginClone,
	},
	{
		[]v1alpha1.KeyringPhase{sealed}, "annotation `rotate-keyring` names this site",
		"site is not the active one, replicates and has not diverged; no ordered update, planned failover, failover, clone or other unseal in flight; every other site is sealed, its escrow Secret there", pending, "work `Rotation`; otherwise refused", isOrdered, beginRotation,
	},
	{
		[]v1alpha1.KeyringPhase{sealed}, "the annotation was answered", "the rotation was carried out", sealed, "forgets that it was", isAnswered, forgetRotation,
	},
	{
		[]v1alpha1.KeyringPhase{pending}, "the order was taken back, or stands no longer", "nothing was changed yet", sealed, "a refusal is answered", isWithdrawn, withdraw,
	},
	{
		[]v1alpha1.KeyringPhase{pending}, "operator unseals the site", "", unsealed,
		"keyring seeded from the current escrow version, for a clone without one from none; new token, escrow agent armed", always, unseal,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, failed}, "the order of a clone stands no longer: the site holds the group's data, or is the active one",
		"its pod was not replaced yet, and is sealed", sealed, "the unseal is given up: in a new pod the site would be wiped", isCloneMoot, giveUpClone,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, escrowed, failed}, "the pod is lost while unsealed, after the work was done",
		"a keyring was escrowed in this round; no rotation, of which the last keys may be missing in it", escrowed, "rendered sealed with the newest version", isLostDone, sealNewest,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, escrowed, failed}, "the pod is lost while unsealed, before the work was done, or in a rotation",
		"a keyring was escrowed in this round", unsealed, "unsealed anew, seeded from the newest version", isLostEscrowed, reseed,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, escrowed, failed}, "the pod is lost while unsealed, and keys with it that were not escrowed",
		"the site is marked as one without data, which a lost rotation does by itself, unless it may have what nobody else has; the active site is open. " +
			"What a keyring reads that was in escrow, and is no longer, only with a confirmed order", unsealed,
		"work `Clone` from a fresh keyring: the site is wiped and cloned from the active one", isLostKeys, cloneInstead,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed}, "the escrow Secret from which the unsealed pod is to start disappears, or its content changes",
		"that pod has no keyring yet, and none was escrowed in this round", failed,
		"event `KeyringEscrowMissing`; restored, the pod starts; else the site is cloned by a confirmed order", isStarved, starve,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, failed}, "the site became the active one before its keys were rotated",
		"its live keyring is the one that it was seeded from", escrowed, "the rotation is given up and answered; rendered sealed again", isOvertaken, giveUp,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, failed}, "the order was taken back before the keys were touched", "the same; the annotation `rotate-keyring` does not name the site", escrowed,
		"rendered sealed again", isTakenBack, giveUp,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, failed}, "the pod is unsealed, ready and does its part", "work `Rotation`; the site is still no active one (I20)", "",
		"both master keys are rotated in a fenced window, without a GTID; a site that lost its mark meanwhile is cloned first", isToRotate, rotating,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, failed}, "both master keys were rotated", "", "", "the new keyring is awaited in escrow", isRotated, rotated,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, failed}, "sidecar pushes keyring to the escrow endpoint",
		"the operator stored a new immutable Secret version and its re-hash equals the live digest; after a rotation only a newer one than the seed", escrowed, "", isEscrowed, escrow,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed}, "`escrowTimeoutSeconds` elapses without escrow", "", failed, "site stays unsealed and keeps retrying", isLate, late,
	},
	{
		[]v1alpha1.KeyringPhase{escrowed}, "MySQL writes the keyring again", "the pod is still unsealed; its live digest is another one", unsealed, "escrowed again", isChanged, escrowAgain,
	},
	{
		[]v1alpha1.KeyringPhase{escrowed}, "the work is done", "the site holds the group's data; its live digest had been that of the escrowed version for 5 s when its sidecar said so, and no newer version of the round is in escrow", "",
		"operator re-renders the site sealed; its pod is replaced when its turn comes", isDone, startSealing,
	},
	{
		[]v1alpha1.KeyringPhase{escrowed}, "operator re-rendered site", "all four sealing conditions hold, and the mount is proven read-only", sealed,
		"pod rolled; token no longer mounted, and removed; superseded versions pruned; for rotation the annotation is cleared", isSealed, seal,
	},
}

func always(Group, Site) bool { return true }

// seen is true if a row's work is with a site whose pod can write its keyring.
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
		return false // I14: only what is marked as without data is unsealed for a clone
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

// isAnswered is true of an order that stands, too, if it is another one than the rotation was carried out for: nothing was done for it.
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

// isCloneMoot: a person had the site promoted, by order, before the pod in which it was to be cloned.
func isCloneMoot(_ Group, s Site) bool {
	return s.Status.Work == v1alpha1.KeyringClone && (s.Active || s.Provisioned) && s.Rendered.Sealed
}

func giveUpClone(_ Group, n *Next) { n.endRound() }

func unseal(_ Group, n *Next) {
	seed, have := n.site.current()
	if !have || n.site.Pod.Lost && n.site.Clone == CloneConfirmed {
		// Only a clone comes here without one. What the old keyring reads is about to be replaced, and may be gone already.
		seed = Version{}
	}
	n.unseal(n.Status.Work, seed)
}

// newer is the newest version that was escrowed in this round. What was there when it began opens nothing that was written in
// it: neither older versions, of which a fresh keyring knows nothing, nor newer ones that a roll-back left.
func newer(s Site) (Version, bool) {
	return s.newest(func(v Version) bool { return v.Number > max(s.Status.SeedVersion, s.Status.FloorVersion) })
}

// lost is true if a pod that could write its keyring is gone, and the one after it cannot start without that keyring. A site
// that was never unsealed from anything starts again by itself, with a new datadir.
func lost(s Site) bool { return (s.Pod.Lost || s.starved()) && seen(s) }

func isLostDone(_ Group, s Site) bool {
	_, have := newer(s)
	// What was escrowed in the midst of a rotation has one of two new keys. A pod that is unsealed anew compares it with what the data
	// needs before mysqld starts; a sealed one would only never start.
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
	// What was rotated stays so: the escrowed keyring may hold only a part of the new keys.
	n.Status.Stage, n.Status.RotationPod = stage, pod
}

// lostKeys is true if master keys were in a pod's memory that is gone, and nowhere else.
func lostKeys(s Site) bool {
	_, have := newer(s)
	return s.Pod.Lost && seen(s) && !have && !s.Active && s.Status.Work == v1alpha1.KeyringRotation && s.Status.Stage == v1alpha1.KeyringRotating
}

func isLostKeys(g Group, s Site) bool {
	// I15: the mark is off, and durably so, before anything is wiped.
	if !lost(s) || s.Active || s.Provisioned || !g.Donor {
		return false
	}
	if !s.Pod.Lost {
		return s.Clone == CloneConfirmed // restored, the escrow Secret that the pod waits for would read what is there
	}
	return s.Status.Work == v1alpha1.KeyringRotation || s.Status.SeedVersion > 0 || isOrderedAnew(s)
}

// isOrderedAnew is true if a person gives up what came into being in this very round: it was in escrow, and is there no longer, so
// the sidecar keeps the data. One round for each pod that says so.
func isOrderedAnew(s Site) bool {
	return s.Clone == CloneConfirmed && s.Pod.Round == s.Status.Round
}

func cloneInstead(_ Group, n *Next) { n.unseal(v1alpha1.KeyringClone, Version{}) }

// isUntouched is true if a site that is unsealed for a rotation has the keyring still that it was seeded from. A report may be
// older than the end of a rotation, and an operator that was restarted knows of none.
func isUntouched(s Site) bool {
	st := s.Status
	return seen(s) && st.Work == v1alpha1.KeyringRotation && st.SeedVersion > 0 && !st.Rotated && !s.Job.Running && !s.Job.Done &&
		s.live() == st.SeedDigest && !s.outlived() && s.Calm >= calmBeforeSealing
}

func isOvertaken(_ Group, s Site) bool { return s.Active && isUntouched(s) }

// isTakenBack needs the stage too: it says, durably, that no rotation was begun.
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
	n.Status.Since = &n.now // from here on there may be keys that are in no escrow
}

func isRotated(_ Group, s Site) bool {
	return s.Job.Done && s.Status.Stage == v1alpha1.KeyringRotating && !s.Status.Rotated
}

func rotated(_ Group, n *Next) {
	n.Status.Rotated = true
	n.say(EventRotated, fmt.Sprintf("Both master keys of site %s were rotated; its new keyring goes into escrow", n.Name))
}

// stored is the version in escrow that is the live keyring, and enough for the work. A keyring that is being written has no digest, and
// no whole version has none.
func stored(s Site) (Version, bool) {
	st, live := s.Status, s.live()
	if !seen(s) {
		return Version{}, false
	}
	if st.Work != v1alpha1.KeyringRotation {
		return s.newest(func(v Version) bool { return v.Digest == live })
	}
	if !st.Rotated && !s.Active {
		return Version{}, false // what is in escrow is the keyring before the rotation
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

// isUntold is true of a rotation that waits for its turn: no key was made, and what reads the data is in escrow. A round that began from
// nothing has no such version.
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
	n.say(EventNotEscrowed, fmt.Sprintf("The keyring of site %s has not been in escrow for %s: %s. It is tried on", n.Name, g.EscrowTimeout, why))
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
	if st.Work == v1alpha1.KeyringRotation && st.Rotated {
		st.RotatedVersion = st.KeyringVersion
	}
	n.endRound()
	n.say(EventSealed, fmt.Sprintf("The keyring of site %s is sealed with %s", n.Name, st.KeyringSecret))
}
