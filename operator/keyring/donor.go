// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Donor describes the encryption of the site to clone from.
type Donor struct {
	Name string
	// Covered is true if its system tablespace should be encrypted.
	Covered bool
	Status  v1alpha1.SiteKeyringStatus
	// Report is what its sidecar says of its keyring; nil if it says nothing.
	Report *wire.KeyringReport
}

// donorWaits is the chain of guards before a clone begins: the first that objects says why it must not begin yet. With MySQL
// 9.7.4 a recipient cannot start if the cloned redo log still holds the encryption of the donor's data dictionary; the sidecar
// calls the dictionary encrypted only once that is behind a checkpoint.
var donorWaits = []func(Donor) string{donorIsSilent, donorIsNotCovered}

// donorIsSilent: a donor with a keyring may be encrypting its dictionary just now. One that never reported a keyring still
// runs without one, and encrypts nothing.
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
		return "" // the donor will never encrypt it
	}
	for _, guard := range donorWaits {
		if why := guard(d); why != "" {
			return why
		}
	}
	return ""
}
