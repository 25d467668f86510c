// SPDX-License-Identifier: Apache-2.0

// Package clone gives the group's data to the sites that do not have it: what is to be done with a site (Clones, in each reconcile), and
// the jobs that do it beside the loops. A clone destroys before it copies: the guards here are I14 and I15 of docs/internals/invariants.md.
package clone
