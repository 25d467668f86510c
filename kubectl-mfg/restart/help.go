// SPDX-License-Identifier: Apache-2.0

package restart

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	Help = `Have the operator replace the pods of MySQL of a group, in the safe order of its updates: the sites that are not active first, one at a
time, each back before the next; then it moves the role by a planned failover and replaces the pod of the former active site.

With SITE only the pod of that site is replaced. The active site is refused: move its role first.

The pods of the cache are left alone.

` + cli.ExitCodes

	Examples = `  # All sites of a group
  kubectl mfg restart orders

  # One replica
  kubectl mfg restart orders frankfurt --yes

  # What would be done? Nothing is sent
  kubectl mfg restart orders --dry-run=client`
)
