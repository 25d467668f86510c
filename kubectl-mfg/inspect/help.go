// SPDX-License-Identifier: Apache-2.0

package inspect

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	CertificatesHelp = `Show the certificates of a group: the authorities in ca.crt, and which of them signs; the server certificate in the Secret of
spec.tls; what MySQL of each site shows in a handshake; and what the escrow listener shows, if the group is encrypted.

Each is checked: has it ended, does it end within 14 days, or a sixth of its time, and nobody renews it, do certificate and key belong together, did an
authority in ca.crt sign it, does it have the name of every site. While an authority is replaced, two are trusted: one signs, the
other signs next or signed before.

It reads the Secret of spec.tls, whose key is only compared with its certificate, and never the authority's. It shakes hands with
MySQL through a forwarded port, and does not log in. What you have no right to see is said to be unknown. Exit code 3 if a check
is FAIL.

` + cli.ExitCodes

	CertificatesExamples = `  # Until when is what good, and who renews it?
  kubectl mfg certificates orders

  # With names and fingerprints
  kubectl mfg certificates orders -o wide

  # Days left of what each site shows
  kubectl mfg certificates orders -o jsonpath='{range .certificates[?(@.what=="site")]}{.site} {.daysLeft}{"\n"}{end}'`
)
