// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// isNumberingAgain: the site's server wrote transactions that were lost, its data lacks them, and another site may still have
// them. Promoted, it would give their numbers to other transactions, and by its numbers the other site would count as whole (I10).
// A server that this version cloned has a new server_uuid, so this is about one that an earlier version cloned, and about a volume
// that was put back to an earlier state.
func isNumberingAgain(s Snapshot, m Memory, site Site) string {
	for _, r := range s.Status.Records {
		lost, err := gtid.Parse(r.LostSet)
		if err != nil {
			continue // it names no numbers; what came of its From is asked by isUnsettled, for which it is a loss
		}
		again := lost.OfServer(site.MySQL.ServerUUID).Subtract(site.All())
		if again.IsEmpty() {
			continue
		}
		for _, other := range s.Sites {
			if other.Name != site.Name && mayHold(m, r, other, again) {
				return fmt.Sprintf("would give the numbers of lost transactions again (%s), which %s may still have; bring %s back, "+
					"or order %s to be cloned anew (annotation %s)", again, other.Name, other.Name, site.Name, v1alpha1.AnnotationRecloneSite)
			}
		}
	}
	return ""
}

// mayHold is false for a site that is known not to have any of what a record calls lost. Who took over lacked it: that is
// what lost means.
func mayHold(m Memory, r v1alpha1.FailoverRecord, site Site, lost gtid.Set) bool {
	if site.Name == r.To || site.neverRan() {
		return false
	}
	if site.SQLAnswers() && !site.OtherVolume {
		return !site.All().Intersect(lost).IsEmpty()
	}
	known, was := m.Executed[site.Name]
	return !was || site.OtherVolume || !known.Intersect(lost).IsEmpty() // not seen, or not as it will come back
}
