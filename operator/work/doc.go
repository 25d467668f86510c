// SPDX-License-Identifier: Apache-2.0

// Package work is what there is of long work: the one register of the sites that it holds, with purpose, window and progress, which
// the poll loops read; the runner beside the loops; and the way to the servers that it is done on.
package work
