// SPDX-License-Identifier: Apache-2.0

//go:build race

package tui

const raceDetector = true
