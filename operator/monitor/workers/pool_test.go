// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"sync"
	"testing"
	"testing/synctest"
)

// TestNoJobWaitsForAnother: a site that does not answer keeps who asks it for a second, and nobody else.
func TestNoJobWaitsForAnother(t *testing.T) {
	c := New()
	var all sync.WaitGroup
	hung := make(chan struct{})
	for range 3 * maxIdle {
		c.Join(&all, func() { <-hung })
	}
	c.Wait(func() { c.Wait(func() { close(hung) }) })
	all.Wait()
}

// TestThePoolIsKeptAndBounded: what was many at once does not stay, and a few are used again.
func TestThePoolIsKeptAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		var all sync.WaitGroup
		busy := make(chan struct{})
		for range 3 * maxIdle {
			c.Join(&all, func() { <-busy })
		}
		close(busy)
		all.Wait()
		synctest.Wait()
		if n := c.idle.Load(); n != maxIdle {
			t.Errorf("%d wait for a job, want %d", n, maxIdle)
		}
		c.Wait(func() {
			if n := c.idle.Load(); n != maxIdle-1 {
				t.Errorf("while one works %d wait, want %d: nobody who waited took the job", n, maxIdle-1)
			}
		})
		synctest.Wait()
		for range maxIdle { // ends those who wait: nothing is left behind
			c.jobs <- func() { c.idle.Add(maxIdle) }
		}
	})
}
