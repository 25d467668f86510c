// SPDX-License-Identifier: Apache-2.0

// Package lineage says how a site's data relates to the data of the group: a part of it, diverged from it, perhaps what was written off, or
// none of it (IdentityOf). What a candidate lacks (Missing, LeftBehind) and what a failover has lost (SettleLoss) follow from it. The
// records of past changes are in the status of the group, and are only read here.
package lineage
