// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// The events of what follows the active site outside the group.
var (
	DNSSwitched  = normal(v1alpha1.ReasonDNSSwitched, "Switch")
	DNSFailed    = warning(v1alpha1.ReasonDNSFailed, "Retry")
	TaintsFailed = warning(v1alpha1.ReasonTaintsFailed, "Retry")
)
