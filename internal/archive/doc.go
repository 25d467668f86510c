// SPDX-License-Identifier: Apache-2.0

// Package archive is the archive of binary logs in object storage: its format, what it says about the history of a group (History), and
// how a server reaches a point in it (Plan). It uses internal/bucket for storage, envelope, errors and the owner of the place; it does not
// know Kubernetes and opens no connection to MySQL.
//
//	<prefix>/<namespace>/<group>/owner.json                              which group may write here (internal/bucket)
//	…/archive/epochs/<epoch>.json                                        Epoch: with which set of GTIDs it began; never overwritten
//	…/archive/binlogs/<epoch>-<site>-<server uuid>/<file>.json           LogManifest of one file; written after its data, never overwritten
//	…/archive/binlogs/<epoch>-<site>-<server uuid>/<file>-<attempt>      the data: zstd, then age if there are recipients
//	…/archive/heartbeat.json                                             Heartbeat: until then nothing was written beyond what is archived
//	…/archive/pruned.json                                                Pruned: what a retained backup holds, and the archive need not
//
// <epoch> has ten digits. <file> is "<log>" for a sealed log, which is whole, and "<log>.<from>" for a segment, with twelve digits: the
// bytes from there to LogManifest.To of a log that was open. <attempt> is random, so that an uploader that was taken for dead cannot write
// into the data of another one; data without a manifest counts for nothing, and is swept.
//
// The plaintext is the binary log as mysqlbinlog reads it, unencrypted whatever the server does with its files: magic, format
// description, events with their checksums. The segments of one log in one folder, joined in order, are its beginning byte for
// byte; a segment other than the first has neither magic nor format description. Files end between transactions.
//
// Credentials may not delete: then segments stay beside the sealed log that replaced them. By their keys they are known, and their manifests are
// not read.
//
// A folder holds what one server archived while it was the active site of one epoch. It begins with the first of its logs that holds anything
// that the archive did not have: logs of different folders overlap, and every log in a folder begins at 0. A log of an epoch may hold
// transactions of earlier epochs, which the server got by replication.
//
// A transaction belongs to the history (I26) if it is in the folder of epoch e, and every later epoch began with it: with the set of its Epoch
// object or, without one, with what its server's own logs hold or name as previous. Between two consecutive epochs of one server nothing is
// lost. What an old site archived beyond that is lost; it stays readable, and no Plan applies it. If someone applied such a transaction again
// later, Plan takes it from there.
//
// Every file says which transactions were executed before its first byte, and a manifest whose data is missing which were executed in it. Those that are neither archived nor before the archive's
// beginning are a gap. The beginning is what Pruned says, which every retained backup holds, or else what was executed before the first
// file.
//
// Times are those of original_commit_timestamp, in microseconds, by the clock of the server that committed.
package archive
