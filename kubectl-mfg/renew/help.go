// SPDX-License-Identifier: Apache-2.0

package renew

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	Help = `Renew the certificate that the operator makes for a group with spec.tls: {}, now instead of when two thirds of its time are over.
The sites take it within minutes, without a restart.

With --authority the authority is replaced, in steps: the new one is put beside the former one into ca.crt, it signs once every
site trusts it and clients have had the time of --grace, and the former one leaves once every site shows a new certificate.
Because that takes a day, it is not waited for unless you say --wait.

A certificate that cert-manager or somebody else makes is renewed there: this command refuses.

` + cli.ExitCodes

	Examples = `  # Another certificate, by the same authority
  kubectl mfg certificates renew orders

  # What would be done? Nothing is sent
  kubectl mfg certificates renew orders --authority --dry-run=client

  # Another authority; clients read ca.crt every hour
  kubectl mfg certificates renew orders --authority --grace 2h --yes`
)
