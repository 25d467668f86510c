// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"testing"
	"time"
)

// TestPaceOfRarePolls: a group at which the operator looks every ten seconds commits between two looks too.
func TestPaceOfRarePolls(t *testing.T) {
	s := begin(Options{Group: "orders"})
	o := object("orders", 7, "paris", "frankfurt", "madrid")
	o.Spec.Failover.PollInterval.Duration = 10 * time.Second
	s.changed(o)
	for range 3 {
		s.tell(false, told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0)))
		for range 10 {
			s.pass(time.Second)
			if pace := s.m.fleet.groups["shop/orders"].pace("paris"); pace < 100 {
				t.Fatalf("%v commits a second", pace)
			}
		}
	}
}
