// SPDX-License-Identifier: Apache-2.0

// Package work has what all long work shares: the one register of the sites that it holds, with purpose, window and progress, which
// the poll loops read; the runner outside the loops; and the connections to the servers.
package work
