// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of events about the objects of the cache store.
const (
	// ReasonCachePodReplaced: a cache pod is replaced, because the specification asks for another one.
	ReasonCachePodReplaced Reason = "CachePodReplaced"
	// ReasonCacheAskedToLeave: only the cache's master is left to update, and moves away first.
	ReasonCacheAskedToLeave Reason = "CacheAskedToLeave"
)
