// SPDX-License-Identifier: Apache-2.0

// Package job runs one command of a backup's Job, in a pod that has the MySQL image and this program: it ends the command in time, tells its
// outcome, and does itself what concerns the storage alone. It carries out; what is backed up, when and from where is the operator's to decide.
//
// Below it are making, which makes a backup of a site, and loading, which restores one, to stay or to be verified; both on top of mysqld, a
// server of their own, and of terms, which is what they are told, what they say, and what a backup says of itself.
//
// A Logical backup is mysqldump's stream; a Physical one a copy by CLONE in a scratch mysqld, whose directory is a tar. Either goes
// through the envelope of internal/bucket into the storage, in one stream: nothing of it is on a disk in the clear. Without a manifest
// there is no backup, and the manifest is written once everything was checked.
//
// A backup never stands in the way: told to give way, it first ends its own sessions on the site, with every lock that they hold.
// It knows no Kubernetes. Secrets come as files, and leave neither in arguments nor in errors or logs.
package job
