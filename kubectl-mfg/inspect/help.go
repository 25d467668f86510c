// SPDX-License-Identifier: Apache-2.0

package inspect

// The commands' help, and their usage.
const (
	CertificatesHelp = `Show the certificates of a group: the authorities in ca.crt, and which of them signs; the server certificate in the Secret of
spec.tls; what MySQL of each site shows in a handshake; and what the escrow listener shows, if the group is encrypted.

Each one is checked. Has it expired? Does it expire within 14 days, or a sixth of its lifetime, without anything that renews it? Do
certificate and key belong together? Did an authority in ca.crt sign it? Does it have the name of every site? While an authority is
being replaced, sites trust two: one signs, the other signs next or signed before.

The command reads the Secret of spec.tls, only to compare its key with its certificate, and never reads the authority's key. It makes a
TLS handshake with MySQL through a forwarded port, and does not log in. What you have no right to see is UNKNOWN. Exit code 3 if a
check is FAIL.`

	CertificatesExamples = `  # When does each expire, and what renews it?
  kubectl mfg certificates orders

  # With names and fingerprints
  kubectl mfg certificates orders -o wide

  # Days left of what each site shows
  kubectl mfg certificates orders -o jsonpath='{range .certificates[?(@.what=="site")]}{.site} {.daysLeft}{"\n"}{end}'`
)
