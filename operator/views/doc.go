// SPDX-License-Identifier: Apache-2.0

// Package views says what each site is, in words for people, labels and metrics, and what clients meet when they write to the active site.
// It reports a decision, and decides nothing.
package views
