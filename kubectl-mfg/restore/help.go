// SPDX-License-Identifier: Apache-2.0

package restore

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	Help = `Make a new group from a backup of another one, or of one that is lost. Nothing is ever restored over a group that is there.

Without --apply the new group is printed as YAML, to read, keep and apply; with --apply it is made, and the restore is followed to its end.
Its specification is the living group's, or that of the file of -f; what only one group can have is changed or left out, and said so. What
can be checked is checked first: the backup as far as this cluster knows it, the Secrets with credentials and identity, and the API server's
rules. Whether the backup is in the storage and whole, and whether the volume is large enough, the operator checks before it touches anything.

--at goes on beyond the backup, by the archive of binary logs (spec.backup.pitr):

  --at 2026-11-25T14:03:21.123456Z   all that was committed until then, to the microsecond
  --at GTID                          all up to and with this transaction
  --at before:GTID                   all before it; "kubectl mfg backup find" tells the GTID of a DROP TABLE
  --at before-failover:EPOCH         what that epoch began with, without what its failover lost
  --at latest                        all that is archived

The archive is asked first whether that can be reached, by a pod that reads its storage, and from which backup; a point that lies in a gap is refused,
with the gap. What a failover lost is in no restore: "kubectl mfg backup lost" has it.

Exit code 5 says that it was refused, or failed: nothing has opened then.

` + cli.ExitCodes

	Examples = `  # What would the new group look like?
  kubectl mfg restore orders-2 --from orders

  # Restore the newest backup, and watch
  kubectl mfg restore orders-2 --from orders --apply

  # The state before somebody dropped a table
  kubectl mfg backup find orders --before-drop shop.orders
  kubectl mfg restore orders-2 --from orders --at before:3e11fa47-71ca-11e1-9e33-c80aa9429562:4711 --apply

  # A certain backup, into another namespace
  kubectl mfg restore orders --from orders --from-namespace shop --backup before-v42 --apply -n staging

  # The group is gone, and so is its namespace: from files alone (docs/disaster.md)
  kubectl mfg restore orders --from orders -f orders.yaml --storage-file storage.yaml --identity-secret mfg-backup-identity --apply -n shop`
)
