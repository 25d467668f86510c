// SPDX-License-Identifier: Apache-2.0

// Package terms is what making and loading a backup agree on: what a Job is told, what it says while it runs and when it ends, and what a backup
// says of its data.
package terms
