// SPDX-License-Identifier: Apache-2.0

package report

// The events of passwords.
var (
	PasswordsRotating  = normal("PasswordsRotating", "Rotate", "New passwords are given to accounts of the operator; the old ones stay valid meanwhile.")
	PasswordsRotated   = normal("PasswordsRotated", "Rotate", "Passwords of the operator's accounts were replaced; the old ones are refused on every site.")
	PasswordsRefused   = warning("PasswordRotationRefused", "Refuse", "A replacement of passwords was asked for and refused; nothing was changed.")
	PasswordsStuck     = warning("PasswordRotationStuck", "Retry", "The active site refuses passwords that are in the Secret, or did not take a change; it is tried again.")
	PasswordEdited     = normal("PasswordEdited", "Rotate", "Somebody wrote another password into the Secret; the servers are given it, and the old one stays in use until they have it.")
	PasswordEditUndone = warning("PasswordEditUndone", "Revert", "Somebody wrote a password that cannot be used, or one while it is being replaced; the Secret is as before.")
)
