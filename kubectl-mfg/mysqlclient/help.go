// SPDX-License-Identifier: Apache-2.0

package mysqlclient

// The command's help, and its usage.
const (
	Help = `Open a mysql client in the pod of the active site, or of SITE, over its socket. You need the right to exec into pods. The
client is the one in the image of MySQL, if the image has one.

The plugin reads the password from a Secret of the group, for which you need the right, and types it where the client asks
for it: it is in no command line, no environment on a terminal, and no log. The accounts:

  admin      root; the operator made its Secret, mysql-GROUP-root
  app        that of spec.application; the operator made its Secret, mysql-GROUP-app. The session begins in its database
  readonly   it may only read; "kubectl mfg account create GROUP" makes it and its Secret, mysql-GROUP-readonly

With --login the client asks you for the password.

MySQL refuses writes on a site that is not active: such a site is read-only, also for root.`

	Examples = `  # A session on the active site
  kubectl mfg mysql orders

  # One statement, on a replica
  kubectl mfg mysql orders frankfurt -e 'SHOW REPLICA STATUS\G'

  # As the application, in its database
  kubectl mfg mysql orders --account app -e 'SHOW TABLES'

  # As another user, with further arguments of the client
  kubectl mfg mysql orders paris --login reporting -- --table`
)
