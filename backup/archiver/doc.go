// SPDX-License-Identifier: Apache-2.0

// Package archiver is the program `backup archive`: it runs in a pod of MySQL, beside the sidecar, and brings the binary logs of the active
// site into the archive. internal/archive has the format; docs/reference/archiver.md says what it is told and what it says.
//
// It keeps no state but the bucket. In each epoch it lists what is there, and goes on from the first of its server's logs that holds anything
// that is not: overlap, never a gap. Binary logs are read through the server, so that they are in the clear whatever is on the disk.
//
// It holds no lock in mysqld, waits for nothing there without a bound, and writes nothing to it. Only while the sidecar says that this pod is
// open as the active site of the epoch, and the server takes writes, does anything get into the archive: that is asked once more after a file
// was read and before it counts (I26).
package archiver
