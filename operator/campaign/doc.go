// SPDX-License-Identifier: Apache-2.0

// Package campaign decides what comes next in the rotation of all sites: which replica gets new master keys, when the role
// moves so that the active site becomes a replica, and what the campaign waits for. It is pure: facts and time come in; the
// next status and effects go out. The caller persists status before it carries out an effect.
//
// It rotates nothing and moves nothing: it gives the orders that a person gives for a single site, and the guards of
// operator/keyring and operator/promotion refuse them as they refuse a person's. docs/decisions/0046 says why.
package campaign
