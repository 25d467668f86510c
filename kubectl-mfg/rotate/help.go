// SPDX-License-Identifier: Apache-2.0

package rotate

// The command's help, and its usage.
const (
	Help = `Give sites new master keys, of InnoDB and of the binary log. The operator rotates a site while it is a replica. It replaces the
site's pod by one whose keyring can be written, rotates both keys without a transaction, puts the new keyring into escrow, and
replaces the pod by a sealed one. Data is not rewritten.

--all asks the operator to rotate all sites: first the replicas, one by one. Then it moves the role to one of them by a planned
failover, and rotates the former active site. The progress is in status.encryptionAtRest.campaign. The operator continues if this
command ends; the same command, from any machine, watches the rotation in progress. If a replica does not follow or an update is
under way, the operator waits, says for what, and continues once that is over.

--stop ends the rotation of all sites: no further step begins. Sites that are done keep their new keys. Within 24 hours of the
beginning, the same command as before continues with the sites that are left; --restart starts over with every site.

Ctrl-C ends only the watching (exit code 4). With --site, the command sends nothing while it prints "waits:"; if it ends then,
nothing is rotated (exit code 5).`

	Examples = `  # What would happen, in which order? Nothing is sent
  kubectl mfg rotate orders --all --dry-run=client

  # All sites; asks first, shows each step, moves the role once. After Ctrl-C, the same command watches again
  kubectl mfg rotate orders --all

  # Stop after the present step
  kubectl mfg rotate orders --stop

  # All but the active site: the role stays
  kubectl mfg rotate orders --all-replicas

  # One replica, from a script
  kubectl mfg rotate orders --site frankfurt --yes -o json`
)
