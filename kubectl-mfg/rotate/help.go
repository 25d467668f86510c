// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// What the command says of itself, and how it is used.
const (
	Help = `Give sites new master keys, of InnoDB and of the binary log. A site is rotated while it is a replica: its pod is replaced
by one whose keyring can be written, both keys are rotated without a transaction, the new keyring goes into escrow, and the
pod is replaced by a sealed one. Data is not rewritten.

--all rotates the replicas one by one, moves the role to one of them by a planned failover, and rotates the former active
site. Nothing is kept on this machine: when it began, and the keyring version that each site had then, is an annotation of
the group (` + v1alpha1.AnnotationRotation + `), and a site is done once status.encryptionAtRest.sites[].rotatedVersion is
newer than that. So after Ctrl-C, or from another machine, the same command goes on with the sites that are left, and takes
the annotation off at the end. --restart forgets what was done and begins with every site again. What was begun more than 24
hours ago is not gone on with: the command is refused until --restart is given. --all-replicas does its part of what --all
began, and leaves the rest to --all, also with --restart.

Ctrl-C ends only the waiting: a rotation that was asked for is finished by the operator (exit code 4). While "waits:" is told
nothing is asked for yet: a wait that ends there leaves nothing that goes on (exit code 5).

` + cli.ExitCodes

	Examples = `  # What would be done, in which order? Nothing is sent
  kubectl mfg rotate orders --all --dry-run=client

  # All sites; asks, shows each step, moves the role once. After Ctrl-C: the same again
  kubectl mfg rotate orders --all

  # All but the active site: the role stays
  kubectl mfg rotate orders --all-replicas

  # One replica, from a script
  kubectl mfg rotate orders --site frankfurt --yes -o json`
)
