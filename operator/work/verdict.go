// SPDX-License-Identifier: Apache-2.0

package work

// Verdict says what to do with a site whose data is not part of the group yet.
type Verdict string

const (
	// VerdictAdopt means that the data is part of the active site's history, and the site can continue from there.
	VerdictAdopt Verdict = "Adopt"
	// VerdictClone means that there is nothing to lose; the site starts with the active site's data.
	VerdictClone Verdict = "Clone"
	// VerdictReclone means that the active site has all that the site has, but the site can no longer catch up.
	VerdictReclone Verdict = "Reclone"
	// VerdictWait means that the operator can decide and do nothing now.
	VerdictWait Verdict = "Wait"
	// VerdictRefuse means that a clone would destroy what may exist nowhere else.
	VerdictRefuse Verdict = "Refuse"
	// VerdictLapse means that the order is no longer valid, and nothing was done under it.
	VerdictLapse Verdict = "Lapse"
)

// Outcome is the result of a job.
type Outcome struct {
	Verdict Verdict
	Message string
	// Cloned is true if a clone was made, Failed if the clone, or the way to it, ended in an error.
	Cloned, Failed bool
	// Unseal is true if a clone waits until the site's keyring is unsealed, Donor if it waits for the encryption of the donor, Copy if it
	// waits for another copy of the data.
	Unseal, Donor, Copy bool
	// Order is the order under which the job ran, as in status; empty if there was none.
	Order string
	// Volume is the data volume that the site had at the last look; empty if not known.
	Volume string
}
