// SPDX-License-Identifier: Apache-2.0

package work

// Verdict is what is to be done with a site whose data is not part of the group yet.
type Verdict string

const (
	// VerdictAdopt means that the data is part of the active site's history and can go on from there.
	VerdictAdopt Verdict = "Adopt"
	// VerdictClone means that there is nothing to lose; the site starts with the active site's data.
	VerdictClone Verdict = "Clone"
	// VerdictReclone means that all that the site has, the active site has too, but it can no longer catch up.
	VerdictReclone Verdict = "Reclone"
	// VerdictWait means that nothing can be said or done now.
	VerdictWait Verdict = "Wait"
	// VerdictRefuse means that a clone would destroy what may exist nowhere else.
	VerdictRefuse Verdict = "Refuse"
	// VerdictLapse means that the order no longer stands, and nothing was done under it.
	VerdictLapse Verdict = "Lapse"
)

// Outcome is what came of a job.
type Outcome struct {
	Verdict Verdict
	Message string
	// Cloned is true if a clone was made, failed if it, or the way to it, ended in an error.
	Cloned, Failed bool
	// Unseal is true if a clone waits for the keyring to be unsealed, donor if it waits for that of the donor.
	Unseal, Donor bool
	// Order is the order under which the job ran, as in status; empty if there was none.
	Order string
	// Volume is the data volume that the site had when it was looked at last; empty if it was not known.
	Volume string
}
