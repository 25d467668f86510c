// SPDX-License-Identifier: Apache-2.0

// Package clocktest makes times whose two clocks differ, as after a machine was suspended. No function of package time makes one.
package clocktest

import (
	"time"
	"unsafe"
)

// Suspended is t as a process reads it if its machine was suspended for so long before: the wall clock went on, the monotonic one stood
// still. A negative duration is a wall clock that was set back. It panics if t has no monotonic clock, or if package time keeps its
// clocks in another way than today.
func Suspended(t time.Time, by time.Duration) time.Time {
	after := t.Add(by)
	clocks := (*struct {
		wall uint64
		ext  int64 // nanoseconds of the monotonic clock
	})(unsafe.Pointer(&after)) //nolint:gosec // the only way to a monotonic clock that differs; checked below
	clocks.ext -= int64(by)
	if !after.Round(0).Equal(t.Round(0).Add(by)) || after.Sub(t) != 0 {
		panic("clocktest: these clocks cannot be parted")
	}
	return after
}
