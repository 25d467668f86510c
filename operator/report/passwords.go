// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// The events of passwords.
var (
	PasswordsRotating  = normal(v1alpha1.ReasonPasswordsRotating, "Rotate")
	PasswordsRotated   = normal(v1alpha1.ReasonPasswordsRotated, "Rotate")
	PasswordsRefused   = warning(v1alpha1.ReasonPasswordRotationRefused, "Refuse")
	PasswordsStuck     = warning(v1alpha1.ReasonPasswordRotationStuck, "Retry")
	PasswordEdited     = normal(v1alpha1.ReasonPasswordEdited, "Rotate")
	PasswordEditUndone = warning(v1alpha1.ReasonPasswordEditUndone, "Revert")
)
