// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// IsNotProvisioned says why a site does not hold the data of the group, or not on this volume; empty if it does (I12).
func IsNotProvisioned(s facts.Snapshot, _ facts.Memory, site facts.Site) string {
	switch t := s.Status.Transition; {
	case site.OtherVolume:
		// This holds before the first opening too: status knows its volume, so it had data, as after a restore of status (I12).
		return "is on another volume than the one that holds its data"
	case site.Provisioned, t != nil && t.Kind == v1alpha1.FailoverBootstrap:
		return "" // the first active site is where the group's data begins; what others hold is compared
	case site.Whole():
		return "is about to be cloned again, and only an order promotes it"
	}
	return "holds no data of the group yet"
}
