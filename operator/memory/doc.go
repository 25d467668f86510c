// SPDX-License-Identifier: Apache-2.0

// Package memory folds a poll into what is remembered of those before: since when a site is silent, what it acknowledged, which pods of it
// may still run and how long their leases last. Remember and WithRuns are the two folds; both return new values, and leave the old memory
// as it was. What a restarted operator does not know makes it wait longer, never act sooner (I9).
package memory
