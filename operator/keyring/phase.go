// SPDX-License-Identifier: Apache-2.0

package keyring

import "github.com/mysql-mfg/mfg/api/v1alpha1"

const (
	none     = v1alpha1.KeyringPhase("")
	pending  = v1alpha1.KeyringPending
	unsealed = v1alpha1.KeyringUnsealed
	escrowed = v1alpha1.KeyringEscrowed
	sealed   = v1alpha1.KeyringSealed
	failed   = v1alpha1.KeyringFailed
)

// Transition is one row of the table. Decide takes the first row whose From and guard fit, and at most one row for each
// site, so that each phase is persisted before the next. Trigger, Condition and Also are for the documentation.
type Transition struct {
	From      []v1alpha1.KeyringPhase
	Trigger   string
	Condition string
	To        v1alpha1.KeyringPhase
	Also      string

	when func(Group, Site) bool
	then func(Group, *Next)
}

// Table holds every transition. Its order matters: rows that protect a keyring come before rows that move on.
var Table = []Transition{
	{
		[]v1alpha1.KeyringPhase{none}, "group created with encryption on, or site added",
		"the site holds no data, and nothing is in escrow for it", unsealed,
		"work `Bootstrap`: keys are made during initialisation; keyring on a memory-backed volume; escrow agent armed", isNew, bootstrap,
	},
	{
		[]v1alpha1.KeyringPhase{none, escrowed}, "status knows nothing of the keyring that a pod can write: a group that was made again while a site was unsealed",
		"that keyring is in no escrow, or not the one that status names", unsealed,
		"work `Rotation`, as one whose keys were rotated: the pod stays, and its keyring goes into escrow. That answers no order to rotate", isFoundLive, takeLive,
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
		"the site is not the active one, and is marked as one without data, as an empty volume does", unsealed,
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
		"a keyring was escrowed in this round", unsealed, "unsealed again, seeded from the newest version", isLostEscrowed, reseed,
	},
	{
		[]v1alpha1.KeyringPhase{unsealed, escrowed, failed}, "the pod is lost while unsealed, and keys with it that were not escrowed",
		"the site is marked as one without data, as after a lost rotation, unless it may have what no other site has; the active site is open. " +
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
