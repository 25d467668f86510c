// SPDX-License-Identifier: Apache-2.0

// Package mysqltest runs real mysqld processes for tests, configured and initialised as a site's, each as the first
// process of a PID namespace of its own and restarted when it ends, as a kubelet would. Everything in it is behind the
// build tag mysqld, needs root and, the first time, the network: a test that asks for a server fails if there is none.
package mysqltest
