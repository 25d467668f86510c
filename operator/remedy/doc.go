// SPDX-License-Identifier: Apache-2.0

// Package remedy holds what people can do about a refusal: words, and the command that they are about. Each is made here once, and is the
// same in a decision, in an explanation and in status. It decides nothing.
package remedy
