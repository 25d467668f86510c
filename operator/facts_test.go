// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/mysql-mfg/mfg/operator/monitor"
)

// A site on which an XA transaction is prepared is no source of a backup, as long as its sidecar says so itself.
func TestAPreparedXATransactionIsAFactOfItsSite(t *testing.T) {
	var s monitor.SiteFacts
	s.Sidecar.Answered, s.Sidecar.Report.PreparedXA = true, 2
	if !siteFacts(s, "a").PreparedXA {
		t.Error("nobody hears of it")
	}
	s.Sidecar.Answered = false
	if siteFacts(s, "a").PreparedXA {
		t.Error("what a sidecar said earlier may be over")
	}
}
