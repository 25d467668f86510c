// SPDX-License-Identifier: Apache-2.0

// Package mysqld runs MySQL's programs here: a server with a socket of ours and no network, in a data directory that has a mark until it is whole, and
// clients whose options are in memory alone.
package mysqld
