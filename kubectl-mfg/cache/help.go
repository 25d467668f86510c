// SPDX-License-Identifier: Apache-2.0

package cache

// The commands' help, and their usage.
const (
	Help = `Show the cache store of a group, move its master, or open a client in it. The cache holds sessions and cached data beside
MySQL, on the active site. It may lose keys, and never delays a failover of MySQL.`

	Examples = `  # Where is the master, which sites follow it, and would a failover keep the sessions?
  kubectl mfg cache status orders

  # Move the master alone; MySQL stays where it is
  kubectl mfg cache promote orders --to frankfurt

  # How many keys are there?
  kubectl mfg cache cli orders -- DBSIZE`

	StatusHelp = `Show the cache store of a group in detail: where its master is, how far the others have caught up, how full they are, whether
the last promotion kept the sessions, what a failover would do to them now, and what clients need to connect.

Exit code 3 if the cache is not ready.`

	StatusExamples = `  # One screen
  kubectl mfg cache status orders

  # Were sessions lost the last time?
  kubectl mfg cache status orders -o jsonpath='{.cache.lastPromotion.sessionsPreserved}'`

	PromoteHelp = `Move the cache's master to another site, and leave MySQL where it is. The operator refuses while the cache of that site has not
caught up, because its sessions would be lost. Clients of the cache are cut off once and connect again.

The master belongs on the active site. Use this command to bring it back there at once, or to move it away before you work on a node.
A master that you moved stays there until MySQL moves to another site, or a person promotes the cache of the active site.`

	PromoteExamples = `  # Bring the master back beside MySQL now
  kubectl mfg cache promote orders --to paris

  # What would happen?
  kubectl mfg cache promote orders --to frankfurt --dry-run

  # From a script: exit code 5 if it was refused
  kubectl mfg cache promote orders --to frankfurt --yes -o jsonpath='{.sessionsPreserved}'`

	ClientHelp = `Open the engine's client (valkey-cli, or redis-cli) in the pod of the cache's master, or of --site. It needs the rights to exec
into pods and to read the Secret with the cache's password.

The password is in no command line, which the audit log of the API server and a list of processes show, and in no environment,
which /proc shows: the client asks for it, and the plugin types it. If the cache uses TLS, so does the client; it
connects to its own pod, so the certificate is not checked.

A replica refuses writes.`

	ClientExamples = `  # A session on the master
  kubectl mfg cache cli orders

  # One command
  kubectl mfg cache cli orders -- INFO replication

  # How does the replica in frankfurt see it?
  kubectl mfg cache cli orders --site frankfurt -- INFO replication`
)
