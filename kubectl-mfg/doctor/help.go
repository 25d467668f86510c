// SPDX-License-Identifier: Apache-2.0

package doctor

// The command's help, and its usage.
const (
	Help = `Check what the operator has no right to see around a group, but you may have: whether Secrets are encrypted at rest
and who can read them, swap and readiness of nodes, sites that share a node, clocks, volumes that can grow, budgets
against eviction, whether sites trust the escrow endpoint, which operator leads, and what would block a failover.

With --preflight, check the cluster before you install mfg: version, rights, storage, nodes, clocks, whether the network
enforces policies, and cert-manager.

Nothing is changed, and no Secret is read. A check for which you lack a right is UNKNOWN, and names the right. Exit code 3
means that a finding is FAIL; with WARN and UNKNOWN alone it is 0.`

	Examples = `  # Before going into production, and once in a while
  kubectl mfg doctor orders

  # Before the install
  kubectl mfg doctor --preflight

  # Only what is wrong
  kubectl mfg doctor orders -o jsonpath='{range .findings[?(@.level=="FAIL")]}{.check}: {.message}{"\n"}{end}'`
)
