// SPDX-License-Identifier: Apache-2.0

// Package explain says why a decision was taken, and what would stand in the way next. It asks the rules again, by the functions that decide,
// each on its own; it adds words and no judgement.
package explain
