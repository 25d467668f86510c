// SPDX-License-Identifier: Apache-2.0

package fence

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the commands say of themselves, and how they are used.
const (
	Help = `Keep one site fenced until you say otherwise: it accepts no writes and takes over from nobody, whatever happens to the others.
It goes on replicating and serving reads.

` + cli.ExitCodes

	Examples = `  # Keep frankfurt from taking over, while its storage is looked at
  kubectl mfg fence on orders frankfurt

  # It is a candidate again
  kubectl mfg fence off orders frankfurt`

	OnHelp = `Keep a site fenced, until ` + "`kubectl mfg fence off`" + `. It is never opened meanwhile: not by an emergency failover, not by a planned one, not
by an order with --accept-data-loss, and not when all sites come back after an outage. If no other site may take the role, the group
stays without a writer, and says why. It goes on replicating and serving reads.

The active site is refused: move the role first (kubectl mfg failover GROUP --to SITE).

It is taken also while no operator runs, for one that comes back. Restarts of the operator change nothing.

` + cli.ExitCodes

	OnExamples = `  # Keep frankfurt from taking over, while its storage is looked at
  kubectl mfg fence on orders frankfurt

  # What would be done? Nothing is sent
  kubectl mfg fence on orders frankfurt --dry-run=client`

	OffHelp = `Let a site take the role again that is kept fenced. It does not become active by that: only if a failover is due, and this site is the
one that may take over, does it happen now. kubectl mfg explain says so beforehand.

` + cli.ExitCodes

	OffExamples = `  # What would happen?
  kubectl mfg explain orders

  # frankfurt is a candidate again
  kubectl mfg fence off orders frankfurt`
)
