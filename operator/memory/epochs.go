// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
)

const (
	// firstEpochs are those that a group may have reached of which status knows nothing: a new one over retained volumes, or a
	// status from a backup. At one failover a second they last for 34,000 years.
	firstEpochs int64 = 1 << 40
	// lostEpochs are those by which a status may be behind that is beyond them: more than a person's orders leave out.
	lostEpochs int64 = 16 * UnseenEpochs
)

// impossible is true for an epoch that nobody can have reached. It is forged or damaged. If the operator went on from it, nothing
// would follow: sidecars never go back (I5), and once the numbers end no role could move again.
func impossible(epoch, known int64) bool {
	if epoch <= known {
		return epoch < 0
	}
	return epoch > max(firstEpochs, known+lostEpochs) || epoch > wire.MaxEpoch-lostEpochs
}

// Believed takes reports under impossible epochs for silence: nobody gains an acknowledgement, a proof or a candidate by one, so
// at worst a failover waits. What the operator saw itself of that site stays.
func Believed(s facts.Snapshot) facts.Snapshot {
	s.Sites = slices.Clone(s.Sites)
	for i := range s.Sites {
		if site := &s.Sites[i]; impossible(site.Sidecar.Report.Epoch, s.Status.Epoch) {
			site.Sidecar, site.Impossible = facts.Sidecar{}, true
		}
	}
	return s
}

// UnseenEpochs is left out when a person orders the first opening although a candidate was not seen, which may know a later epoch
// than the others: none of those may be used for two sites (I1).
const UnseenEpochs = 1_000_000
