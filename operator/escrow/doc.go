// SPDX-License-Identifier: Apache-2.0

// Package escrow keeps the keyrings of encrypted sites: every version of a keyring is an immutable Secret of its own,
// written once, read back and compared. It stores, finds, hashes and prunes; when a site is sealed or unsealed is decided
// in operator/keyring. Neither key bytes nor tokens leave it in an error or a log line. The endpoint in front of it is
// documented in docs/reference/http.md.
package escrow
