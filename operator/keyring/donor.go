// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Donor is the site to be cloned from, as far as encryption goes.
type Donor struct {
	Name string
	// Covered is true if its system tablespace is to be encrypted.
	Covered bool
	Status  v1alpha1.SiteKeyringStatus
	// Report is what its sidecar says; nil if it says nothing, or nothing of a keyring.
	Report *wire.KeyringReport
}

// donorWaits is the chain of guards before a clone begins: the first that answers says why it must not yet. MySQL 9.7.4 leaves a
// recipient that cannot start if the redo log that is cloned still holds the encryption of the donor's data dictionary; the
// sidecar says that it is encrypted only once that is behind a checkpoint.
var donorWaits = []func(Donor) string{donorIsSilent, donorIsNotCovered}

// donorIsSilent: a donor that has a keyring may be encrypting its dictionary just now. One that never spoke of a keyring runs
// without one still, and encrypts nothing.
func donorIsSilent(d Donor) string {
	if d.Report != nil && d.Report.Coverage != nil || d.Report == nil && d.Status.Coverage.KeyringComponent == "" {
		return ""
	}
	return fmt.Sprintf("the sidecar of %s does not say what is encrypted there", d.Name)
}

func donorIsNotCovered(d Donor) string {
	if d.Report == nil || d.Report.Coverage == nil || d.Report.Coverage.SystemTablespace {
		return ""
	}
	return fmt.Sprintf("the data dictionary of %s is not encrypted yet, or not behind a checkpoint: a clone of it now may not start", d.Name)
}

// DonorWaits says why no clone from a donor may begin now; empty if it may.
func DonorWaits(d Donor) string {
	if !d.Covered {
		return "" // nobody will encrypt it
	}
	for _, guard := range donorWaits {
		if why := guard(d); why != "" {
			return why
		}
	}
	return ""
}
