// SPDX-License-Identifier: Apache-2.0

// Package escrow keeps the keyrings of encrypted sites: every version of a keyring is an immutable Secret of its own,
// written once, read back and compared. It stores, finds, hashes and prunes; operator/keyring decides when a site is
// sealed or unsealed. No error and no log line of it has key bytes or tokens in it. docs/reference/http.md describes the
// endpoint in front of it.
package escrow
