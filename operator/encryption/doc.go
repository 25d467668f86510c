// SPDX-License-Identifier: Apache-2.0

// Package encryption is the shell around operator/keyring: it gathers what the phases of keyrings stand on, persists what was decided and
// carries it out. It never sees a key: the store of keyrings is behind the interface Escrow.
package encryption
