// SPDX-License-Identifier: Apache-2.0

package apppassword

// The commands' help, and their usage.
const (
	Help = `Replace the password of the group's application (spec.application) in two steps, so that no login is refused at any moment. First, rotate
gives the account a second password and puts it into the Secret mysql-GROUP-app. Let your applications load it. Then retire ends
the old password.

You need the rights to read the Secrets mysql-GROUP-root and mysql-GROUP-app, to write the latter, and to exec into pods.`

	Examples = `  # A new password
  kubectl mfg app-password rotate orders

  # All applications have it
  kubectl mfg app-password retire orders`

	RotateHelp = `Give the application's account a second, new password, and put it into the Secret mysql-GROUP-app once every site accepts it. The old
password stays valid until ` + "`kubectl mfg app-password retire`" + `.

You can interrupt the command at any moment, and run it again to continue. Until it is done, the new password is in the Secret under
the key next-password. To choose the password, write it there first. A failover may happen meanwhile.

The command waits for a site that cannot be reached: if that site took over without the password, applications could not log in.`

	RotateExamples = `  # A new password; asks first, then shows progress
  kubectl mfg app-password rotate orders

  # frankfurt is down for a week
  kubectl mfg app-password rotate orders --without frankfurt

  # What would be done?
  kubectl mfg app-password rotate orders --dry-run=client`

	RetireHelp = `End the old password of the application's account, once all applications have the new one. The password in the Secret mysql-GROUP-app
stays valid, and open sessions stay. An application that still uses the old password cannot log in again.`

	RetireExamples = `  # All applications have the new password
  kubectl mfg app-password retire orders

  # From a script
  kubectl mfg app-password retire orders --yes`
)
