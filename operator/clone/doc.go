// SPDX-License-Identifier: Apache-2.0

// Package clone gives the group's data to the sites that lack it: Clones decides in each reconcile what to do with a site, and jobs do it
// outside the loops. A clone destroys before it copies: the guards here are I14 and I15 of docs/internals/invariants.md.
package clone
