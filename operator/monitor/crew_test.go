// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"sync"
	"testing"
	"testing/synctest"
)

// TestNoJobWaitsForAnother: a site that does not answer keeps who asks it for a second, and nobody else.
func TestNoJobWaitsForAnother(t *testing.T) {
	c := newCrew()
	var all sync.WaitGroup
	hung := make(chan struct{})
	for range 3 * crewWaits {
		c.join(&all, func() { <-hung })
	}
	c.wait(func() { c.wait(func() { close(hung) }) })
	all.Wait()
}

// TestTheCrewIsKeptAndBounded: what was many at once does not stay, and a few are used again.
func TestTheCrewIsKeptAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew()
		var all sync.WaitGroup
		busy := make(chan struct{})
		for range 3 * crewWaits {
			c.join(&all, func() { <-busy })
		}
		close(busy)
		all.Wait()
		synctest.Wait()
		if n := c.idle.Load(); n != crewWaits {
			t.Errorf("%d wait for a job, want %d", n, crewWaits)
		}
		c.wait(func() {
			if n := c.idle.Load(); n != crewWaits-1 {
				t.Errorf("while one works %d wait, want %d: nobody who waited took the job", n, crewWaits-1)
			}
		})
		synctest.Wait()
		for range crewWaits { // ends those who wait: nothing is left behind
			c.jobs <- func() { c.idle.Add(crewWaits) }
		}
	})
}
