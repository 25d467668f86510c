// SPDX-License-Identifier: Apache-2.0

// Package suites tests the whole on the lab: real Kubernetes, real MySQL, faults that are real. Everything in it is
// behind the build tag lab and needs root on a Debian machine; a test that cannot run fails. See CONTRIBUTING.md.
package suites
