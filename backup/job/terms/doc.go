// SPDX-License-Identifier: Apache-2.0

// Package terms is what making and loading a backup agree on: the configuration of a Job, what it reports while it runs and when it ends, and what a backup
// says of its data.
package terms
