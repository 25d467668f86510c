// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"testing"
	"time"
)

func TestAhead(t *testing.T) {
	asked := time.UnixMilli(1_000_000)
	if got := Ahead(1000.55, asked, 100*time.Millisecond); got == nil || *got < 0.499 || *got > 0.501 {
		t.Errorf("got %v", got)
	}
	if got := Ahead(1000.55, asked, time.Second); got != nil {
		t.Errorf("an answer that took a second tells the clock: %v", *got)
	}
}
