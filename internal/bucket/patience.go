// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"cmp"
	"time"
)

// Patience says how long to wait between tries while the storage is unreachable. The number of tries is fixed. Zero means the default, which
// all but tests use.
type Patience struct {
	// RequestPauseMax is the longest pause between two tries of one request of S3. Default 20 s.
	RequestPauseMax time.Duration
	// CallPause is the first pause between two tries of a small operation; each later one is three times as long. Default 0.5 s.
	CallPause time.Duration
	// AbortTimeout is how long the storage may take to forget an upload that we gave up. Default 30 s.
	AbortTimeout time.Duration
}

func (p Patience) orDefault() Patience {
	return Patience{
		RequestPauseMax: cmp.Or(p.RequestPauseMax, 20*time.Second), CallPause: cmp.Or(p.CallPause, 500*time.Millisecond),
		AbortTimeout: cmp.Or(p.AbortTimeout, 30*time.Second),
	}
}
