// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"sync"
	"sync/atomic"
)

// crew does the short jobs of all loops on goroutines that it keeps. A poll and a signature need deep stacks: were each done on a
// goroutine of its own, thousands would grow one every two seconds, or keep it.
type crew struct {
	jobs chan func()
	idle atomic.Int32
}

// crewWaits is how many goroutines wait for the next job at most: more than have something to do at once while all sites answer.
const crewWaits = 64

func newCrew() *crew { return &crew{jobs: make(chan func())} }

// start has a job done, by somebody who waits or else by somebody new: no job waits for another one.
func (c *crew) start(job func()) {
	select {
	case c.jobs <- job:
	default:
		go c.work(job)
	}
}

// wait has a job done and waits for its end.
func (c *crew) wait(job func()) {
	var done sync.WaitGroup
	c.join(&done, job)
	done.Wait()
}

// join has a job done that others wait for.
func (c *crew) join(others *sync.WaitGroup, job func()) {
	others.Add(1)
	c.start(func() {
		defer others.Done()
		job()
	})
}

func (c *crew) work(job func()) {
	for {
		job()
		if c.idle.Add(1) > crewWaits {
			c.idle.Add(-1)
			return
		}
		job = <-c.jobs
		c.idle.Add(-1)
	}
}
