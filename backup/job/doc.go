// SPDX-License-Identifier: Apache-2.0

// Package job makes, loads and verifies backups of one site, in a Job that has the MySQL image and this program. It carries out; what
// is backed up, when and from where is the operator's to decide.
//
// A Logical backup is mysqldump's stream; a Physical one a copy by CLONE in a scratch mysqld, whose directory is a tar. Either goes
// through the envelope of internal/bucket into the storage, in one stream: nothing of it is on a disk in the clear. Without a manifest
// there is no backup, and the manifest is written once everything was checked.
//
// A backup never stands in the way: told to give way, it first ends its own sessions on the site, with every lock that they hold.
// It knows no Kubernetes. Secrets come as files, and leave neither in arguments nor in errors or logs.
package job
