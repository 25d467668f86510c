// SPDX-License-Identifier: Apache-2.0

// Package explain says why a decision was taken, and what would stand in the way next. It asks the rules again, each on its own, through the
// functions that decide; it adds words and no judgement.
package explain
