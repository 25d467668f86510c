// SPDX-License-Identifier: Apache-2.0

package apppassword

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the commands say of themselves, and how they are used.
const (
	Help = `Replace the password of the group's application (spec.application) without a moment in which it is refused, in two steps: rotate gives the
account another password beside the one that it has and puts it into the Secret mysql-GROUP-app. Your applications take it. Then
retire ends the old one.

You need the right to read the Secrets mysql-GROUP-root and mysql-GROUP-app, to write the latter, and to exec into pods.

` + cli.ExitCodes

	Examples = `  # Another password
  kubectl mfg app-password rotate orders

  # All applications have it
  kubectl mfg app-password retire orders`

	RotateHelp = `Give the application's account another password, beside the one that it has, and put it into the Secret mysql-GROUP-app once every site
lets the account in with it. The old one stays valid until ` + "`kubectl mfg app-password retire`" + `.

It may be interrupted at any moment, and goes on where it was when you run it again: the new password is under the key
next-password of the Secret until then. To choose it, write it there before. A failover may happen meanwhile.

It waits for a site that cannot be reached: if that took over without the password, applications could not log in.

` + cli.ExitCodes

	RotateExamples = `  # Another password; asks, and shows how far it is
  kubectl mfg app-password rotate orders

  # frankfurt is away for a week
  kubectl mfg app-password rotate orders --without frankfurt

  # What would be done?
  kubectl mfg app-password rotate orders --dry-run=client`

	RetireHelp = `End the older password of the application's account, once all applications have the new one. What stands in the Secret mysql-GROUP-app
stays valid. Sessions stay too; an application that still has the old password cannot log in again.

` + cli.ExitCodes

	RetireExamples = `  # All applications have the new password
  kubectl mfg app-password retire orders

  # From a script
  kubectl mfg app-password retire orders --yes`
)
