// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/gate"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// keptShut keeps a site closed that would otherwise be opened now, until its keyring is in escrow (I16). It says so loudly
// once that takes longer than any step may.
func (d Decision) keptShut(s Snapshot, seen Topology, site, why string) Decision {
	since := d.Memory.ReopenSince
	if t := s.Status.Transition; t != nil {
		since = gate.Later(t.GatePassedAt, s.LeaderSince)
	}
	verdict := VerdictWait
	if late(s, since) {
		verdict, why = VerdictBlocked, why+"; "+remedy.NotEscrowed.String()
	}
	return d.say(seen, verdict, v1alpha1.ReasonKeyringNotEscrowed, "%s is not opened: %s", site, why).within(s.Policy.PollInterval / 4)
}
