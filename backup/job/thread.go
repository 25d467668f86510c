// SPDX-License-Identifier: Apache-2.0

package job

import "runtime"

// lockThread keeps the goroutine on its thread: a death signal is bound to the thread that starts the child.
func lockThread() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
