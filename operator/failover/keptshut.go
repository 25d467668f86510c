// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// keptShut keeps a site closed that would otherwise be opened now, until its keyring is in escrow (I16). It says so loudly
// once that takes longer than any step may.
func (d Decision) keptShut(s Snapshot, seen Topology, site, why string) Decision {
	long := late(s, d.Memory.ReopenSince)
	if s.Status.Transition != nil {
		long = opensLate(s, d.Memory)
	}
	verdict := VerdictWait
	if long {
		verdict, why = VerdictBlocked, why+"; "+remedy.NotEscrowed.String()
	}
	return d.say(seen, verdict, v1alpha1.ReasonKeyringNotEscrowed, "%s is not opened: %s", site, why).within(s.Policy.PollInterval / 4)
}
