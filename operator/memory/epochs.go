// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
)

const (
	// firstEpochs is how many epochs a group may have reached although status knows none of them: a new group over
	// retained volumes, or a status from a backup. At one failover a second they last for 34,000 years.
	firstEpochs int64 = 1 << 40
	// lostEpochs is how many epochs a status beyond those may be behind: more than a person's orders leave out.
	lostEpochs int64 = 16 * UnseenEpochs
)

// impossible is true for an epoch that the group cannot have reached. It is forged or damaged. The operator must not continue
// from it: sidecars never go back (I5), and once the numbers end no role could move again.
func impossible(epoch, known int64) bool {
	if epoch <= known {
		return epoch < 0
	}
	return epoch > max(firstEpochs, known+lostEpochs) || epoch > wire.MaxEpoch-lostEpochs
}

// Believed treats reports under impossible epochs as silence: such a report brings no acknowledgement, proof or candidate, so at
// worst a failover waits. What the operator itself saw of that site stays.
func Believed(s facts.Snapshot) facts.Snapshot {
	s.Sites = slices.Clone(s.Sites)
	for i := range s.Sites {
		if site := &s.Sites[i]; impossible(site.Sidecar.Report.Epoch, s.Status.Epoch) {
			site.Sidecar, site.Impossible = facts.Sidecar{}, true
		}
	}
	return s
}

// UnseenEpochs is how many epochs the first opening skips if a person orders it although a candidate was not seen. That one may
// know later epochs than the others, and none of those may be used for two sites (I1).
const UnseenEpochs = 1_000_000
