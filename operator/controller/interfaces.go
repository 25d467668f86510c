// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Loops are the poll loops, one for each group.
type Loops interface {
	// Ensure starts the loop of a group if none runs. It may be called repeatedly.
	Ensure(key types.NamespacedName)
	// Forget ends the loop of a group that is gone or going. It may be called repeatedly.
	Forget(key types.NamespacedName)
	// Ended is true once a forgotten loop has fully ended.
	Ended(key types.NamespacedName) bool
}

// LongWork is what the poll loop must know of work outside it. *work.Register implements it. A busy site is no
// candidate, is not attached, and is shown as Cloning.
type LongWork interface {
	// Busy says whether long work holds a site, and for which purpose.
	Busy(namespace, group, site string) (purpose string, busy bool)
	// Windows returns the windows that go into the group's statement.
	Windows(namespace, group string) []wire.Window
	// Leaving says whether the role of the active site should move away from a site, and why.
	Leaving(namespace, group, site string) (reason string, wanted bool)
}
