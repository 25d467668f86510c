// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"cmp"
	"time"
)

// Patience is for how long a storage that is away is asked again. How often it is asked is always the same. Zero means the default, which
// is what everybody but tests has.
type Patience struct {
	// RequestPauseMax is the longest pause between two tries of one request of S3. Default 20 s.
	RequestPauseMax time.Duration
	// CallPause is the first pause between two tries of a small operation; each one after it is three times as long. Default 0.5 s.
	CallPause time.Duration
	// AbortTimeout is how long the storage may take to forget an upload that was given up. Default 30 s.
	AbortTimeout time.Duration
}

func (p Patience) orDefault() Patience {
	return Patience{
		RequestPauseMax: cmp.Or(p.RequestPauseMax, 20*time.Second), CallPause: cmp.Or(p.CallPause, 500*time.Millisecond),
		AbortTimeout: cmp.Or(p.AbortTimeout, 30*time.Second),
	}
}
