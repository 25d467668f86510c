// SPDX-License-Identifier: Apache-2.0

// Package workers keeps goroutines for short jobs.
package workers

import (
	"sync"
	"sync/atomic"
)

// Pool does short jobs on goroutines that it keeps. It is safe for concurrent use. A poll and a signature need deep stacks: with a goroutine
// for each job, thousands would grow a stack every two seconds, or keep it.
type Pool struct {
	jobs chan func()
	idle atomic.Int32
}

// maxIdle is how many goroutines wait for the next job at most: more than are busy at once while all sites answer.
const maxIdle = 64

// New makes a Pool.
func New() *Pool { return &Pool{jobs: make(chan func())} }

// start gives a job to an idle goroutine or else to a new one: no job waits for another.
func (p *Pool) start(job func()) {
	select {
	case p.jobs <- job:
	default:
		go p.work(job)
	}
}

// Wait starts a job and waits for its end.
func (p *Pool) Wait(job func()) {
	var done sync.WaitGroup
	p.Join(&done, job)
	done.Wait()
}

// Join starts a job that others wait for.
func (p *Pool) Join(others *sync.WaitGroup, job func()) {
	others.Add(1)
	p.start(func() {
		defer others.Done()
		job()
	})
}

func (p *Pool) work(job func()) {
	for {
		job()
		if p.idle.Add(1) > maxIdle {
			p.idle.Add(-1)
			return
		}
		job = <-p.jobs
		p.idle.Add(-1)
	}
}
