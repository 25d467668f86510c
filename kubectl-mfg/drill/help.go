// SPDX-License-Identifier: Apache-2.0

package drill

// The command's help, and its usage.
const (
	Help = `Move the role to another site and back by two planned failovers, and compare each write pause with a target. A failover that
you never practise does not work on the day you need it.

The drill reports two figures. The operator's: from the moment at which it persisted the intent to move, before it stopped
writes, to the moment at which it saw the new site open. And that of a canary, which tries to write a row on both sites
every 20 ms: the longest time without an acknowledged row. At the end every acknowledged row must be there. Clients of the
Service see the canary's pause plus the time that they take to reconnect.

The canary runs the mysql client in the pods, as root and over the socket, in a schema of its own, mfg_drill_NUMBER, that it
drops at the end. A drill that is killed leaves it behind; remove it with DROP SCHEMA. The canary needs the rights to exec into
pods and to read the group's root Secret; --canary=false does without.

The drill begins only if the group is healthy, and waits until it is healthy again between the two moves. If the way back
fails, the role stays where it is, and the report says so. If the group is not healthy again within --timeout, or after
Ctrl-C, the drill does not move back (exit code 5), and prints the command that does. With -o json and -o junit a drill that
did not begin is reported too.`

	Examples = `  # There and back; writes may pause for two seconds each
  kubectl mfg drill orders --target 2s

  # Every night, for CI
  kubectl mfg drill orders --target 2s --yes -o junit > drill.xml

  # What would be done?
  kubectl mfg drill orders --dry-run=client`
)
