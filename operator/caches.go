// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/operator/controller"
)

// bothLoops are the two loops of a group: of its MySQL and of its cache. They begin and end together.
type bothLoops struct {
	mysql, cache controller.Loops
	// access is what they read Secrets with; it forgets a group with them.
	access interface{ Forget(types.NamespacedName) }
}

func (b bothLoops) Ensure(key types.NamespacedName) {
	b.mysql.Ensure(key)
	b.cache.Ensure(key)
}

func (b bothLoops) Forget(key types.NamespacedName) {
	b.mysql.Forget(key)
	b.cache.Forget(key)
	b.access.Forget(key)
}

// Ended is true once neither loop runs: only then may another release operate the group.
func (b bothLoops) Ended(key types.NamespacedName) bool {
	return b.mysql.Ended(key) && b.cache.Ended(key)
}
