// SPDX-License-Identifier: Apache-2.0

// Package archive is the archive of binary logs in object storage: its format, what it says about the history of a group (History), and
// how a server comes to a point in it (Plan). It stands on internal/bucket for storage, envelope, errors and the owner of the place; it
// knows no Kubernetes and opens no connection to MySQL.
//
//	<prefix>/<namespace>/<group>/owner.json                              which group may write here (internal/bucket)
//	…/archive/epochs/<epoch>.json                                        Epoch: with which set of GTIDs it began; never overwritten
//	…/archive/binlogs/<epoch>-<site>-<server uuid>/<file>.json           LogManifest of one file; written after its data, never overwritten
//	…/archive/binlogs/<epoch>-<site>-<server uuid>/<file>-<attempt>      the data: zstd, then age if there are recipients
//	…/archive/heartbeat.json                                             Heartbeat: until then nothing was written beyond what is archived
//	…/archive/pruned.json                                                Pruned: what a retained backup holds, and the archive need not
//
// <epoch> has ten digits. <file> is "<log>" of a sealed log, which is whole, and "<log>.<from>" of a segment, with twelve digits: the bytes
// from there to LogManifest.To of a log that was open. <attempt> is random, so that an uploader that was taken for dead cannot write into
// the data of another; data without a manifest is nothing, and is swept.
//
// The plaintext is the binary log as mysqlbinlog reads it, in the clear whatever the server does with its files: magic, format
// description, events with their checksums. The segments of one log in one folder, put behind each other, are its beginning byte for
// byte; a segment other than the first has neither magic nor format description. Files end between transactions.
//
// A folder is what one server archived while it was the active site of one epoch. It begins with the first of its logs that holds anything
// that the archive did not have: logs of different folders overlap, and every log in a folder begins at 0. A log of an epoch may hold
// transactions of the epochs before, as the server got them by replication.
//
// What belongs to the history (I26): a transaction that is in the folder of epoch e, and that every later epoch began with: the set of its Epoch
// object or, without one, what its server's own logs hold or name as previous. Between two epochs of one server, one after the other, nothing
// is lost. What an old site archived beyond that is lost; it stays readable, and no Plan applies it. One that somebody applied again later is
// taken from there.
//
// What is missing: every file says which transactions were executed before its first byte. Those that are neither archived nor before the
// archive's beginning are a gap. Its beginning is what Pruned says, which is what every retained backup holds, or else what was executed
// before the first file.
//
// Times are those of original_commit_timestamp, microseconds, by the clock of the server that committed.
package archive
