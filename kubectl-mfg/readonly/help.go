// SPDX-License-Identifier: Apache-2.0

package readonly

// The commands' help, and their usage.
const (
	Help = `Make an account of MySQL that may only read, for people and reports, or drop it. It is called readonly. Its password is in the Secret
mysql-GROUP-readonly, from which the plugin logs in:

  kubectl mfg mysql GROUP --account readonly

You need the rights to read the Secret mysql-GROUP-root, to get, create, update and delete mysql-GROUP-readonly, and to exec into pods.`

	Examples = `  # An account that reads the application's database
  kubectl mfg account create orders

  # Look at a replica with it
  kubectl mfg mysql orders frankfurt --account readonly

  # It is no longer needed
  kubectl mfg account drop orders`

	CreateHelp = `Make the account readonly on the active site, from where it replicates, and its Secret mysql-GROUP-readonly. It may read the application's
database (spec.application), or those that you name, and nothing else.

You can run the command again: it continues after an interruption, and with other databases it replaces the rights of the account. A Secret of
that name that a person made is left alone.`

	CreateExamples = `  # It reads the application's database
  kubectl mfg account create orders

  # It reads two databases; a session begins in the first
  kubectl mfg account create orders --database shop --database reports

  # What would be done?
  kubectl mfg account create orders --dry-run=client`

	DropHelp = `Drop the account readonly on the active site, from where that replicates, and delete its Secret mysql-GROUP-readonly. Sessions that are open
stay open.`

	DropExamples = `  # Asks first
  kubectl mfg account drop orders

  # From a script
  kubectl mfg account drop orders --yes`
)
