// SPDX-License-Identifier: Apache-2.0

package logs

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	Help = `Show the logs of all pods of a group as one: MySQL, sidecar, archiver, cache and backups, in the order of their times.
Each line has its time (UTC, when the node got it), site and container, level, and text. It needs the right to list
pods and to read their logs.

The level is the key "level" of our own logs, and the one in mysqld's error log; a line without one, as of a stack trace,
has that of the line before it. With -f, pods that are replaced are followed too. Control characters are shown as \x1b.

` + cli.ExitCodes

	Examples = `  # What went wrong in the last hour?
  kubectl mfg logs orders --level warning

  # Follow a failover
  kubectl mfg logs orders -f --since 1m

  # One site's MySQL, from the beginning
  kubectl mfg logs orders --site frankfurt --container mysql --since 0`
)
