// SPDX-License-Identifier: Apache-2.0

//go:build lab && stories

package suites

// allStories is whether the long stories of data-at-rest encryption are played too.
const allStories = true
