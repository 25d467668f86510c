// SPDX-License-Identifier: Apache-2.0

package drill

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	Help = `Move the active site to another one and back by two planned failovers, and judge each against a target. A failover that
is never practised does not work on the day that it is needed.

Two figures are measured. The operator's own: from the moment at which the intent to move was persisted, before writes
were stopped, to the moment at which the new site was seen open. And that of a canary, which tries to write a row on both
sites every 20 ms: the longest time in which none was acknowledged. In the end every acknowledged row must be there.
Clients of the Service see the canary's pause plus the time that they take to reconnect.

The canary runs the mysql client in the pods, as root and over the socket, in a schema mfg_drill that is dropped in the end. It
needs the right to exec into pods and to read the group's root Secret; --canary=false does without.

It begins only with a group that is healthy, and waits between the two moves until it is healthy again. If the way back
fails, the role stays where it is and the report says so. So it does if the group is not seen healthy again within --timeout, or
after Ctrl-C: the way back is not asked for then (exit code 5), and the command for it is told. With -o json and -o junit one that does not begin is reported too.

` + cli.ExitCodes

	Examples = `  # There and back; writes may pause for two seconds each
  kubectl mfg drill orders --target 2s

  # Every night, for CI
  kubectl mfg drill orders --target 2s --yes -o junit > drill.xml

  # What would be done?
  kubectl mfg drill orders --dry-run=client`
)
