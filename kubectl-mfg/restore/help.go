// SPDX-License-Identifier: Apache-2.0

package restore

// The command's help, and its usage.
const (
	Help = `Create a new group from a backup of another group, or of one that is lost. A restore never overwrites an existing group.

Without --apply, print the new group as YAML, to read, keep and apply. With --apply, create it and follow the restore to its end. The
specification comes from the existing group, or from the file of -f. The plugin changes or omits what only one group can have, and says
so. It first checks what it can: the backup as far as this cluster knows it, the Secrets with credentials and identity, and the API
server's rules. The operator checks that the backup is in the storage and whole, and that the volume is large enough, before it touches
anything.

--at goes beyond the backup, with the archive of binary logs (spec.backup.pitr):

  --at 2026-11-25T14:03:21.123456Z   everything committed until then, to the microsecond
  --at GTID                          everything up to and including this transaction
  --at before:GTID                   everything before it; "kubectl mfg backup find" shows the GTID of a DROP TABLE
  --at before-failover:EPOCH         what that epoch began with, without what its failover lost
  --at latest                        everything that is archived

A pod first reads the archive's storage and checks that it reaches the point, and from which backup. A point in a gap is refused, with
the gap. A restore never contains what a failover lost: see "kubectl mfg backup lost".

Exit code 5 means that the restore was refused or failed. No database has opened then.`

	Examples = `  # What would the new group look like?
  kubectl mfg restore orders-2 --from orders

  # Restore the newest backup, and watch
  kubectl mfg restore orders-2 --from orders --apply

  # The state before a table was dropped
  kubectl mfg backup find orders --before-drop shop.orders
  kubectl mfg restore orders-2 --from orders --at before:3e11fa47-71ca-11e1-9e33-c80aa9429562:4711 --apply

  # A particular backup, into another namespace
  kubectl mfg restore orders --from orders --from-namespace shop --backup before-v42 --apply -n staging

  # The group and its namespace are gone: from files alone (docs/disaster.md)
  kubectl mfg restore orders --from orders -f orders.yaml --storage-file storage.yaml --identity-secret mfg-backup-identity --apply -n shop`
)
