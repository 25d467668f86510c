// SPDX-License-Identifier: Apache-2.0

package fence

// The commands' help, and their usage.
const (
	Help = `Keep one site fenced until you end it: the site accepts no writes and never takes over, whatever happens to the other sites.
It continues to replicate and to serve reads.`

	Examples = `  # Keep frankfurt from taking over while you examine its storage
  kubectl mfg fence on orders frankfurt

  # It is a candidate again
  kubectl mfg fence off orders frankfurt`

	OnHelp = `Keep a site fenced until ` + "`kubectl mfg fence off`" + `. Until then the operator never opens it: not in an emergency failover, not in a planned
one, not by an order with --accept-data-loss, and not when all sites come back after an outage. If no other site may take the role, the
group stays without a writer, and says why. The site continues to replicate and to serve reads.

The command refuses the active site: move the role first (kubectl mfg failover GROUP --to SITE).

The command also works while no operator runs; the next one obeys it. Restarts of the operator change nothing.`

	OnExamples = `  # Keep frankfurt from taking over while you examine its storage
  kubectl mfg fence on orders frankfurt

  # What would happen? Nothing is sent
  kubectl mfg fence on orders frankfurt --dry-run=client`

	OffHelp = `Let a fenced site take the role again. That alone does not make it active. But if a failover is due, and this site is the one that may
take over, the failover happens now. kubectl mfg explain says so beforehand.`

	OffExamples = `  # What would happen?
  kubectl mfg explain orders

  # frankfurt is a candidate again
  kubectl mfg fence off orders frankfurt`
)
