// SPDX-License-Identifier: Apache-2.0

package logs

// The command's help, and its usage.
const (
	Help = `Show the logs of all pods of a group as one stream, sorted by time: MySQL, sidecar, archiver, cache and backups.
Each line has its time (UTC, when the node received it), site and container, level, and text. You need the rights to list
pods and to read their logs.

The level comes from the key "level" of mfg's own logs, or from mysqld's error log. A line without a level, such as one of a
stack trace, has that of the line before it. -f also follows the pods that replace others. Control characters are shown as \x1b.`

	Examples = `  # What went wrong in the last hour?
  kubectl mfg logs orders --level warning

  # Follow a failover
  kubectl mfg logs orders -f --since 1m

  # One site's MySQL, from the beginning
  kubectl mfg logs orders --site frankfurt --container mysql --since 0`
)
