// SPDX-License-Identifier: Apache-2.0

package cli

// Control sequences of a terminal: the screen is drawn over, line by line, so that it does not flicker.
const (
	ClearScreen = "\x1b[2J"
	CursorHome  = "\x1b[H"
	ClearLine   = "\x1b[K"
	ClearBelow  = "\x1b[J"
)
