// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// The events of a reclone.
var (
	RecloneAccepted = normal(v1alpha1.ReasonRecloneAccepted, "Clone")
	RecloneRefused  = warning(v1alpha1.ReasonRecloneRefused, "Refuse")
	RecloneDone     = normal(v1alpha1.ReasonRecloneDone, "Clone")
)
