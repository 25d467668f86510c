// SPDX-License-Identifier: Apache-2.0

// Package keyring decides in which phase the keyring of each site is, how its pod has to be made, and what has to be done
// for that. It is pure: facts and time come in, the next status, wishes and effects go out. Status is persisted before an
// effect is carried out, and every effect may be carried out again. One table (phase.go) holds all transitions;
// docs/internals/keyring-phases.md shows it and says why.
package keyring
