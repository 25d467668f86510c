// SPDX-License-Identifier: Apache-2.0

// Package views says what each site is, in words for people, labels and metrics, and what clients meet who write to the active one. It tells
// of a decision, and decides nothing.
package views
