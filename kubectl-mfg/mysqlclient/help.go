// SPDX-License-Identifier: Apache-2.0

package mysqlclient

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	Help = `Open a mysql client in the pod of the active site, or of SITE, over its socket. It needs the right to exec into pods; the
client is the one in the image of MySQL, if it has one.

The password comes from a Secret of the group, which needs the right to read it, and is typed where the client asks for
it: it is in no command line, no environment on a terminal, and no log. The accounts:

  admin      root; the operator has made its Secret, mysql-GROUP-root
  app        that of spec.application; the operator has made its Secret, mysql-GROUP-app. The session begins in its database
  readonly   yours, with a Secret mysql-GROUP-readonly

With --user the client asks you for the password.

A write on a site that is not active is refused by MySQL: such a site is read-only, also for root.

` + cli.ExitCodes

	Examples = `  # A session on the active site
  kubectl mfg mysql orders

  # One statement, on a replica
  kubectl mfg mysql orders frankfurt -e 'SHOW REPLICA STATUS\G'

  # As the application, in its database
  kubectl mfg mysql orders --account app -e 'SHOW TABLES'

  # As another user, with further arguments of the client
  kubectl mfg mysql orders paris --user reporting -- --table`
)
