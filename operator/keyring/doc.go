// SPDX-License-Identifier: Apache-2.0

// Package keyring decides in which phase the keyring of each site is, how the site's pod must be made, and what must be
// done for that. It is pure: facts and time come in; the next status, wishes and effects go out. The caller persists
// status before it carries out an effect, and may carry out any effect more than once. One table (phase.go) holds all
// transitions; docs/internals/keyring-phases.md shows it and says why.
package keyring
