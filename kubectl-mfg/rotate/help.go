// SPDX-License-Identifier: Apache-2.0

package rotate

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	Help = `Give sites new master keys, of InnoDB and of the binary log. A site is rotated while it is a replica: its pod is replaced
by one whose keyring can be written, both keys are rotated without a transaction, the new keyring goes into escrow, and the
pod is replaced by a sealed one. Data is not rewritten.

--all asks the operator for all sites: it rotates the replicas one by one, moves the role to one of them by a planned failover,
and rotates the former active site. How far it is stands in status.encryptionAtRest.campaign. The operator goes on whatever
becomes of this command: the same command, from any machine, watches what is under way. If something is in the way, a replica
that does not follow or an update, the operator waits, says for what, and goes on once that is over.

--stop ends it: no further step begins. Sites that are done keep their new keys. The same command as before goes on with those
that are left, within 24 hours of when it began; --restart begins with every site again.

Ctrl-C ends only the watching (exit code 4). With --site, nothing is asked for yet while "waits:" is told: a wait that ends there
leaves nothing that goes on (exit code 5).

` + cli.ExitCodes

	Examples = `  # What would be done, in which order? Nothing is sent
  kubectl mfg rotate orders --all --dry-run=client

  # All sites; asks, shows each step, moves the role once. After Ctrl-C: the same again watches it
  kubectl mfg rotate orders --all

  # No further site
  kubectl mfg rotate orders --stop

  # All but the active site: the role stays
  kubectl mfg rotate orders --all-replicas

  # One replica, from a script
  kubectl mfg rotate orders --site frankfurt --yes -o json`
)
