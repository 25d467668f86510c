// SPDX-License-Identifier: Apache-2.0

// Package scope is the working set of one reconcile of one group: what was read, what status will say, and the questions about a site
// that every part of the controller asks in the same way.
package scope
