// SPDX-License-Identifier: Apache-2.0

// Package report holds what the operator says to people and to monitoring in three packages: events, conditions and metrics. They decide
// nothing, and know no feature: each feature declares its own events and series next to the code that emits them. The tests here list them
// all and make docs/reference/signals.md from them.
package report
