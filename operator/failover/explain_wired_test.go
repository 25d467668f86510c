// SPDX-License-Identifier: Apache-2.0

package failover_test

import (
	"github.com/mysql-mfg/mfg/operator/explain"
	"github.com/mysql-mfg/mfg/operator/failover"
)

func init() { failover.Explain = explain.Explain }
