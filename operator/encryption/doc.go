// SPDX-License-Identifier: Apache-2.0

// Package encryption is the shell around operator/keyring: it gathers the facts for the phases of keyrings, persists each decision and
// carries it out. It never sees a key: the store of keyrings is behind the interface Escrow.
package encryption
