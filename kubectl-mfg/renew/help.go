// SPDX-License-Identifier: Apache-2.0

package renew

// The command's help, and its usage.
const (
	Help = `Renew the certificate that the operator issues for a group with spec.tls: {} now, instead of after two thirds of its lifetime.
The sites load it within minutes, without a restart.

With --authority, replace the authority too, in steps. The operator adds the new authority to ca.crt beside the old one. The new one
signs once every site trusts it and the time of --grace has passed for clients. The old one is removed once every site shows a new
certificate. Because that takes a day, the command waits for it only with --wait.

A certificate from cert-manager or another issuer is renewed by that issuer: this command refuses.`

	Examples = `  # A new certificate from the same authority
  kubectl mfg certificates renew orders

  # What would happen? Nothing is sent
  kubectl mfg certificates renew orders --authority --dry-run=client

  # A new authority; your clients read ca.crt every hour
  kubectl mfg certificates renew orders --authority --grace 2h --yes`
)
