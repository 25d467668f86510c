// SPDX-License-Identifier: Apache-2.0

// Package replay brings a server that was loaded from a backup to a later point in the history of its group, by the archive of binary
// logs. What is wanted is decided first, as an exact set of GTIDs (Resolve); then this program is, for the mysqld that it runs, the
// source of a replication channel (Run). The server receives what is wanted as relay logs that it writes, encrypts and purges itself, and
// applies them with parallel workers. So no more than a bounded part of the archive is on the volume at a time, none of it in the clear
// on a disk, and nothing that is not wanted ever reaches the server: what a failover lost, what lies beyond the target, what the backup
// holds. docs/decisions/0028 has the reasons.
//
// It knows no Kubernetes, and nothing of where the archive is.
package replay
