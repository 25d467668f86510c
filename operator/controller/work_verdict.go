// SPDX-License-Identifier: Apache-2.0

package controller

// verdict is what is to be done with a site whose data is not part of the group yet.
type verdict string

const (
	// verdictAdopt: the data is part of the active site's history and can go on from there.
	verdictAdopt verdict = "Adopt"
	// verdictClone: there is nothing to lose; the site starts with the active site's data.
	verdictClone verdict = "Clone"
	// verdictReclone: all that the site has, the active site has too, but it can no longer catch up.
	verdictReclone verdict = "Reclone"
	// verdictWait: nothing can be said or done now.
	verdictWait verdict = "Wait"
	// verdictRefuse: a clone would destroy what may exist nowhere else.
	verdictRefuse verdict = "Refuse"
	// verdictLapse: the order no longer stands, and nothing was done under it.
	verdictLapse verdict = "Lapse"
)

// outcome is what came of a job.
type outcome struct {
	verdict verdict
	message string
	// cloned is true if a clone was made, failed if it, or the way to it, ended in an error.
	cloned, failed bool
	// unseal is true if a clone waits for the keyring to be unsealed, donor if it waits for that of the donor.
	unseal, donor bool
	// order is the order under which the job ran, as in status; empty if there was none.
	order string
	// volume is the data volume that the site had when it was looked at last; empty if it was not known.
	volume string
}
