// SPDX-License-Identifier: Apache-2.0

// Package report is all that the operator says to people and to monitoring: the table of events, the reasons of
// conditions, and the metric series. It decides nothing. Tables in docs/ are generated from it.
package report
