// SPDX-License-Identifier: Apache-2.0

// Package campaign decides what comes next in the rotation of all sites: which replica gets new master keys, when the role
// moves so that the active site becomes one, and what all of it waits for. It is pure: facts and time come in, the next status
// and effects go out, and status is persisted before an effect is carried out.
//
// It rotates nothing and moves nothing: it gives the orders that a person gives for a single site, and those are refused by
// the guards of operator/keyring and operator/promotion as a person's are. docs/decisions/0046 tells why.
package campaign
