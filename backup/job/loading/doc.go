// SPDX-License-Identifier: Apache-2.0

// Package loading restores a backup into a server here, to a point behind it if one is asked for, and compares what is there with what the backup
// says: for a site that begins with it, or to verify it.
package loading
