// SPDX-License-Identifier: Apache-2.0

package restart

// The command's help, and its usage.
const (
	Help = `Have the operator replace the MySQL pods of a group in the safe order of its updates. First the sites that are not active, one at a
time, each back before the next. Then the operator moves the role by a planned failover and replaces the pod of the former active site.

With SITE, replace only the pod of that site. The command refuses the active site: move its role first.

The pods of the cache are not replaced.`

	Examples = `  # All sites of a group
  kubectl mfg restart orders

  # One replica
  kubectl mfg restart orders frankfurt --yes

  # What would happen? Nothing is sent
  kubectl mfg restart orders --dry-run=client`
)
