// SPDX-License-Identifier: Apache-2.0

package failover

import "github.com/mysql-mfg/mfg/api/wire"

// Explanation is what Explain says.
type Explanation = wire.Explanation

// Explain is explain.Explain, which is above this package. Both are asked of the same worlds here: an explanation that says something
// else than the decision is worse than none.
var Explain func(Snapshot, Memory, Decision) Explanation
